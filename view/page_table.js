// The steps table: only the rows in view exist.

const ROW = 26;
const scroller = document.getElementById("scroll");
const spacer = document.getElementById("spacer");
const table = {
	rows: [], // steps shown, in order
	made: new Map(), // row number -> its element
	again: false, found: false, // filters
	key: null, down: false, // sorting
};
const COLUMNS = [
	["step", "step", (a, b) => a - b, "number"], ["phase", "phase"], ["node", "node"],
	["cost", data.costs === null ? "cost" : "cost, µs", (a, b) => stepCost(a) - stepCost(b), "number"],
	["live", "live", (a, b) => stepLive[a] - stepLive[b], "number"],
	["why", !guarded ? "run again" : data.again.step.length ? "run again, or only when" : "runs only when"],
];
if (!data.again.step.length && !guarded) { // a column of nothing
	COLUMNS.pop();
	document.getElementById("table").classList.add("once");
}

// A name whose middle goes where there is no room: its end tells most. Its text stays whole, to be copied.
function middleCut(name) {
	const END = 12, letters = [...name], at = letters.length - END;
	if (at < 8)
		return [name];
	return [element("span", { class: "head" }, letters.slice(0, at).join("")), element("span", { class: "tail" }, letters.slice(at).join(""))];
}

function whyAgain(s) {
	const words = [stepWhy(s), stepWhen(s) && `when ${stepWhen(s)}`].filter(Boolean).join(", ");
	if (recomputeOf[s] < 0)
		return [words];
	const which = `recompute of step ${count(recomputeOf[s] + 1)}`;
	return [element("span", { class: "again" }, which), words ? `, ${words}` : ""];
}

function fillRows() {
	const rows = [];
	for (let s = 0; s < nstep; s++)
		if ((!table.again || recomputeOf[s] >= 0) && (!table.found || !map.found || map.found.steps[s]))
			rows.push(s);
	if (table.key) {
		const compare = COLUMNS.find((c) => c[0] === table.key)[2];
		rows.sort((a, b) => (table.down ? compare(b, a) : compare(a, b)) || a - b);
	}
	table.rows = rows;
	spacer.style.height = `${rows.length * ROW}px`;
	scroller.setAttribute("aria-rowcount", String(rows.length));
	document.getElementById("table-count").textContent = rows.length === nstep ? plural(nstep, "step") : `${count(rows.length)} of ${plural(nstep, "step")}`;
	refreshRows();
}

function refreshRows() {
	for (const row of table.made.values())
		row.remove();
	table.made.clear();
	showRows();
}

function makeRow(i) {
	const s = table.rows[i], row = element("div", { class: "tr", role: "row", "data-step": String(s), "aria-rowindex": String(i + 1) });
	const phase = element("span", { class: "phase" }, PHASES[stepPhase(s)]);
	const bar = element("i");
	const cells = [["number", count(s + 1)], ["", phase], ["node", ...middleCut(stepName(s))], ["number", precise(stepCost(s))],
		["number live", human(stepLive[s]), bar], ["why", ...whyAgain(s)]].slice(0, COLUMNS.length);
	phase.style.setProperty("--phase", `var(--${PHASES[stepPhase(s)]})`);
	bar.style.setProperty("--share", `${(100 * stepLive[s]) / liveMost}%`);
	for (const [kind, ...content] of cells)
		row.append(element("span", { class: kind, role: "cell" }, ...content));
	row.children[2].title = stepName(s);
	if (row.children[5])
		row.children[5].title = row.children[5].textContent;
	row.style.top = `${i * ROW}px`;
	row.classList.toggle("found", Boolean(map.found && map.found.steps[s]));
	return row;
}

function showRows() {
	const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - 8);
	const last = Math.min(table.rows.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + 8);
	for (const [i, row] of table.made)
		if (i < first || i >= last) {
			row.remove();
			table.made.delete(i);
		}
	for (let i = first; i < last; i++)
		if (!table.made.has(i)) {
			const row = makeRow(i);
			table.made.set(i, row);
			spacer.append(row);
		}
	markHover();
}

// Rows of the step under the map's pointer and of the pinned one.
function markHover() {
	for (const row of table.made.values()) {
		const s = Number(row.dataset.step);
		row.classList.toggle("hover", Boolean(map.hover && map.hover.step === s));
		row.classList.toggle("on", Boolean(map.pinned && map.pinned.step === s));
	}
}

function revealRow(s) {
	const i = table.key || table.rows.length !== nstep ? table.rows.indexOf(s) : s;
	if (i < 0)
		return;
	const top = i * ROW, room = scroller.clientHeight;
	if (top < scroller.scrollTop || top + ROW > scroller.scrollTop + room)
		scroller.scrollTop = Math.max(0, top - room / 2);
	showRows();
}

function drawHead() {
	const head = document.getElementById("thead");
	head.replaceChildren();
	for (const [key, title, compare, kind] of COLUMNS) {
		const on = table.key === key, cell = element("div", { class: kind || "", role: "columnheader", "aria-sort": on ? (table.down ? "descending" : "ascending") : "none" });
		const label = element(compare ? "button" : "span", compare ? { type: "button", title: "Sort" } : null, on ? `${title} ${table.down ? "▾" : "▴"}` : title);
		if (compare)
			label.addEventListener("click", () => {
				// dearest first, then cheapest first, then by step again
				[table.key, table.down] = !on ? [key, key !== "step"] : table.down ? [key, false] : [null, false];
				scroller.scrollTop = 0;
				drawHead();
				fillRows();
			});
		cell.append(label);
		head.append(cell);
	}
}

function listenTable() {
	const stepUnder = (event) => {
		const row = event.target.closest(".tr");
		return row ? Number(row.dataset.step) : -1;
	};
	scroller.addEventListener("scroll", showRows, { passive: true });
	scroller.addEventListener("mouseover", (event) => {
		const s = stepUnder(event);
		hover(s >= 0 ? { step: s, buffer: -1 } : null);
	});
	scroller.addEventListener("mouseleave", () => hover(null));
	scroller.addEventListener("click", (event) => {
		const s = stepUnder(event);
		if (s >= 0)
			selectStep(s);
	});
	scroller.addEventListener("keydown", (event) => {
		const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!move || !table.rows.length)
			return;
		const at = map.pinned ? table.rows.indexOf(map.pinned.step) : -1;
		event.preventDefault();
		selectStep(table.rows[Math.min(Math.max(at + move, 0), table.rows.length - 1)]);
	});
	document.getElementById("only-again").addEventListener("change", (event) => {
		table.again = event.target.checked;
		scroller.scrollTop = 0;
		fillRows();
	});
	document.getElementById("only-found").addEventListener("change", (event) => {
		table.found = event.target.checked;
		scroller.scrollTop = 0;
		fillRows();
	});
	new ResizeObserver(showRows).observe(scroller);
}
