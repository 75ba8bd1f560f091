// The page around the map: the numbers on top, what is pinned, the search, links, start.

const byId = (id) => document.getElementById(id);

function drawHeader() {
	const ratio = data.once > 0 ? data.total / data.once : 1;
	const gap = data.bound !== null && data.total > 0 ? (100 * (data.total - data.bound)) / data.total : null;
	const proven = data.bound !== null && data.total <= data.bound * (1 + 1e-9);
	const cards = [
		["budget", "Budget", data.budget === null ? "none" : human(data.budget), data.budget, data.budget === null ? "no budget was asked" : `${count(data.budget)} bytes`],
		["arena", "Arena", human(data.arena), data.arena, `${count(data.arena)} bytes`],
		["peak", "Peak of live bytes", human(data.peak), data.peak, nstep ? `step ${count(data.peakStep + 1)} of ${count(nstep)}` : "no steps"],
		["cost", "Cost", `${ratio.toFixed(3)} ×`, data.total, data.costs === null ? "one pass" : `one pass; ${precise(data.total / 1e3)} ms predicted`],
		["bound", "Least possible", data.bound === null ? "unknown" : data.once > 0 ? `${(data.bound / data.once).toFixed(3)} ×` : "1.000 ×", data.bound,
			gap === null ? "no bound proven" : proven ? "proven optimal" : gap < 0.005 ? "optimal within rounding" : `gap at most ${gap.toFixed(2)} %`],
		["runs", "Recomputed", count(data.recomputedRuns), data.recomputedRuns, `extra runs of ${plural(data.recomputedOps, "node")}`],
	];
	for (const [id, title, shown, value, sub] of cards)
		byId("cards").append(element("div", { class: "card" }, element("dt", null, title),
			element("dd", null, element("data", { id, value: String(value) }, shown), element("span", { class: "sub" }, sub))));
	const verdict = byId("verdict");
	if (data.costs !== null)
		byId("cost").parentElement.parentElement.title = `costs: ${data.costs}`;
	if (data.keep && data.keep.arena > data.arena)
		verdict.append("Trains in ", element("b", null, human(data.arena)), ` instead of ${human(data.keep.arena)}: `,
			element("b", null, `${(100 * (1 - data.arena / data.keep.arena)).toFixed(1)} % less memory`),
			" for ", element("b", null, `${(100 * (ratio - 1)).toFixed(1)} % more computation`), ". ");
	else if (ratio > 1)
		verdict.append("Computes ", element("b", null, `${(100 * (ratio - 1)).toFixed(1)} % more`), " than one pass. ");
	verdict.append(`${plural(data.kept, "activation")} kept for backward (${human(data.keptBytes)}), ${plural(data.overwritten, "buffer")} overwritten in place (${human(data.overwrittenBytes)}).`);
	if (data.offloads > 0)
		verdict.append(` ${plural(data.offloads, "tensor")} (${human(data.hostBytes)}) kept in the host's memory meanwhile.`);
}

function drawPeak() {
	const bar = byId("peak-bar"), parts = [];
	for (const k of [1, 2, 0, 3, 4, 5, 6]) {
		const bytes = data.atPeak[k], part = element("span", { title: `${KIND_WORDS[k]}: ${exactBytes(bytes)}` });
		part.style.background = `var(--k${k})`;
		part.style.flex = `${bytes} 0 0`;
		if (bytes)
			bar.append(part);
		parts.push(`${KIND_WORDS[k]} ${human(bytes)}`);
		byId("kinds").append(element("li", { class: bytes ? "" : "none" }, swatch(k), KIND_WORDS[k],
			element("b", null, element("data", { id: `peak-${KINDS[k]}`, value: String(bytes) }, human(bytes)))));
	}
	bar.setAttribute("aria-label", parts.join(", "));
	if (nstep)
		byId("peak-where").textContent = `step ${count(data.peakStep + 1)}, ${PHASES[stepPhase(data.peakStep)]}, ${stepName(data.peakStep)}`;
}

function drawLegend() {
	const stroke = (colour, dash) => {
		const e = element("span", { class: "stroke" });
		e.style.borderTop = `2px ${dash ? "dashed" : "solid"} var(--${colour})`;
		return e;
	};
	const toggle = (key, mark, text) => {
		const box = element("input", { type: "checkbox", id: `show-${key}` });
		box.checked = map.show[key];
		box.addEventListener("change", () => {
			map.show[key] = box.checked;
			rescale();
		});
		byId("legend").append(element("li", null, element("label", null, box, mark, text)));
	};
	const patch = (background) => {
		const e = element("span", { class: "swatch" });
		e.style.background = background;
		return e;
	};
	toggle("live", stroke("live"), "live bytes");
	if (keepLive)
		toggle("keep", stroke("keep", true), `live bytes if everything were kept (peak ${human(data.keep.peak)}), at equal progress: as many distinct nodes done`);
	if (data.budget !== null)
		toggle("budget", stroke("warn"), "budget");
	byId("legend").append(element("li", null, patch("repeating-linear-gradient(135deg, var(--k3) 0 2px, color-mix(in srgb, var(--k3) 40%, var(--plot)) 2px 5px)"), "recomputed lifetime"));
	for (const phase of PHASES)
		byId("legend").append(element("li", null, patch(`var(--${phase})`), phase));
	byId("legend").append(element("li", null, patch("var(--again)"), "step is a recomputation"));
}

// --- What is pinned ---

const MANY = 60;

function link(text, act) {
	const e = element("button", { type: "button", class: "go" }, text);
	e.addEventListener("click", act);
	return e;
}
function links(title, items) {
	const list = element("ul");
	for (const item of items.slice(0, MANY))
		list.append(element("li", null, item));
	if (items.length > MANY)
		list.append(element("li", { class: "note" }, `and ${count(items.length - MANY)} more`));
	return items.length ? [element("h3", null, title), list] : [];
}
function pairs(rows) {
	const list = element("dl", { class: "pairs" });
	for (const [key, value] of rows)
		list.append(element("dt", null, key), element("dd", null, value));
	return list;
}
const stepLink = (s) => link(`step ${count(s + 1)} · ${stepName(s)}${recomputeOf[s] >= 0 ? " (again)" : ""}`, () => selectStep(s));
const bufferLink = (b) => link(`${bufferName(b)} · ${human(bufferBytes[b])}`, () => selectBuffer(b));

function describeBuffer(b) {
	const tensor = bufferOf[b], first = bufferFirst[b];
	const rows = [["size", exactBytes(bufferBytes[b])], ["offset", count(bufferOffset[b])], ["steps", `${count(first + 1)} – ${count(bufferLast[b] + 1)}`]];
	const out = [element("p", { class: "chip" }, swatch(bufferKind[b]), KINDS[bufferKind[b]]), element("p", { class: "name" }, bufferName(b))];
	if (tensor < 0 || !isResident(tensor))
		rows.push([tensor < 0 ? "used by" : "made by", stepLink(first)]);
	if (bufferAgain[b])
		rows.push(["", link(`recompute of step ${count(recomputeOf[first] + 1)}`, () => selectStep(recomputeOf[first]))]);
	out.push(pairs(rows));
	if (tensor < 0)
		return out;
	out.push(...links(map.lit.buffers.length > 1 ? `${map.lit.buffers.length} lifetimes` : "one lifetime",
		map.lit.buffers.map((k) => link(`steps ${count(bufferFirst[k] + 1)} – ${count(bufferLast[k] + 1)} at ${count(bufferOffset[k])}${bufferAgain[k] ? " (recomputed)" : ""}`, () => selectBuffer(k)))));
	out.push(...links(`read by ${plural(map.lit.steps.length, "step")}`, map.lit.steps.map(stepLink)));
	return out;
}

function describeStep(s) {
	const op = stepOp[s], reads = [];
	for (let i = opReadsAt[op]; i < opReadsAt[op + 1]; i++)
		reads.push(lifetimeAt(opReads[i], s));
	const rows = [["step", `${count(s + 1)} of ${count(nstep)}`], ["phase", PHASES[stepPhase(s)]], ["cost", precise(stepCost(s)) + (data.costs === null ? "" : " µs predicted")], ["live", exactBytes(stepLive[s])]];
	if (loopOf.has(op)) {
		const l = loopOf.get(op), [kept, again] = loopWords(l);
		rows.push(["loop", `${turnsOf(l)}, ${human(l.turn_bytes)} for one`]);
		if (stepPhase(s) === 1)
			rows.push(["kept", again ? `${kept}; ${again}` : kept]);
	}
	if (stepWhen(s))
		rows.push(["runs when", stepWhen(s)]);
	if (recomputeOf[s] >= 0)
		rows.push(["run", link(`recompute of step ${count(recomputeOf[s] + 1)}`, () => selectStep(recomputeOf[s]))]);
	if (forcedAt(s) >= 0)
		rows.push(["why", link(`${stepWhy(s)}, ${stepName(forcedAt(s))}`, () => selectStep(forcedAt(s)))]);
	else if (stepWhy(s))
		rows.push(["why", stepWhy(s)]);
	const others = [];
	for (let k = 0; k < nstep; k++)
		if (stepOp[k] === op && k !== s)
			others.push(k);
	return [element("p", { class: "name" }, stepName(s)), pairs(rows), ...links("reads", reads.filter((b) => b >= 0).map(bufferLink)),
		...links("makes", buffersFrom(s).map(bufferLink)), ...links("other runs", others.map(stepLink))];
}

function showPinned() {
	const at = map.pinned, body = byId("details-body");
	if (!at)
		body.replaceChildren(element("p", { class: "note" }, "Click a rectangle or a row: its tensor's other lifetimes and the steps that read it light up on the map."));
	else {
		body.replaceChildren(...(at.buffer >= 0 ? describeBuffer(at.buffer) : describeStep(at.step)));
		byId("announce").textContent = tipRows(at.step, at.buffer).map((r) => r.join(" ")).join(", ");
		revealRow(at.step);
	}
	markHover();
	writeLink();
}

// --- Search ---

const search = { text: "", steps: [], at: -1 };

function find(text) {
	const wanted = text.trim().toLowerCase();
	search.text = text;
	search.steps = [];
	search.at = -1;
	map.found = null;
	if (wanted) {
		const holds = (name) => name.toLowerCase().includes(wanted);
		const ops = data.op.name.map(holds), tensors = data.tensor.name.map(holds);
		markFound(ops, tensors);
		const n = ops.filter(Boolean).length, m = tensors.filter(Boolean).length;
		byId("search-count").textContent = n || m ? `${plural(n, "node")}, ${plural(m, "tensor")}` : "nothing found";
	} else
		byId("search-count").textContent = "";
	pin(null);
	if (table.found)
		fillRows();
	else
		refreshRows();
}

// Steps and buffers of the names found; a resident stands for the steps that read it.
function markFound(ops, tensors) {
	const steps = new Uint8Array(nstep), buffers = [];
	for (let s = 0; s < nstep; s++) {
		const op = stepOp[s];
		let hit = ops[op];
		for (let i = opReadsAt[op]; !hit && i < opReadsAt[op + 1]; i++)
			hit = tensors[opReads[i]] && isResident(opReads[i]);
		steps[s] = hit ? 1 : 0;
	}
	for (let b = 0; b < nbuffer; b++) {
		const of = bufferOf[b], made = of < 0 ? ops[-1 - of] : ops[data.tensor.producer[of]];
		if (!made && !(of >= 0 && tensors[of]))
			continue;
		buffers.push(b);
		if (of >= 0 && !isResident(of))
			steps[bufferFirst[b]] = 1;
	}
	for (let s = 0; s < nstep; s++)
		if (steps[s])
			search.steps.push(s);
	map.found = { buffers, steps };
}

function jump(by) {
	const n = search.steps.length;
	if (!n)
		return;
	search.at = search.at < 0 && by < 0 ? n - 1 : (search.at + by + n) % n;
	selectStep(search.steps[search.at]);
	byId("search-count").textContent = `${count(search.at + 1)} of ${plural(n, "step")}`;
}

function listenSearch() {
	const input = byId("search");
	let wait = 0;
	input.addEventListener("input", () => {
		clearTimeout(wait);
		wait = setTimeout(() => find(input.value), nstep > 3000 ? 150 : 30);
	});
	input.addEventListener("keydown", (event) => {
		if (event.key === "Enter" && event.shiftKey) {
			event.preventDefault();
			jump(-1);
		}
	});
	byId("search-form").addEventListener("submit", (event) => {
		event.preventDefault();
		clearTimeout(wait);
		if (input.value !== search.text)
			find(input.value);
		jump(1);
	});
	byId("search-back").addEventListener("click", () => jump(-1));
	document.addEventListener("keydown", (event) => {
		if (event.key === "/" && event.target !== input) {
			event.preventDefault();
			input.focus();
			input.select();
		} else if (event.key === "Escape") {
			if (input.value || search.text) {
				input.value = "";
				find("");
			}
			pin(null);
		}
	});
}

// --- Links into the page: #step=12, #search=conv, #tensor=NAME, #recomputed ---

let reading = true; // nothing is written while a link is being followed

function writeLink() {
	if (reading)
		return;
	const parts = [], at = map.pinned;
	if (search.text)
		parts.push(`search=${encodeURIComponent(search.text)}`);
	if (at && at.buffer >= 0 && bufferOf[at.buffer] >= 0)
		parts.push(`tensor=${encodeURIComponent(bufferName(at.buffer))}`);
	if (at)
		parts.push(`step=${at.step + 1}`);
	try {
		history.replaceState(null, "", `#${parts.join("&")}`);
	} catch {
		// some browsers limit how often, or forbid it for files: the page works without
	}
}

function readLink() {
	const link1 = new URLSearchParams(location.hash.slice(1)), step = parseInt(link1.get("step"), 10) - 1;
	reading = true;
	if (link1.has("recomputed")) {
		table.again = byId("only-again").checked = true;
		fillRows();
	}
	if (link1.has("search")) {
		byId("search").value = link1.get("search");
		find(link1.get("search"));
	}
	const tensor = link1.has("tensor") ? data.tensor.name.indexOf(link1.get("tensor")) : -1;
	const buffer = tensor < 0 ? -1 : step >= 0 && lifetimeAt(tensor, step) >= 0 ? lifetimeAt(tensor, step) : bufferOf.indexOf(tensor);
	if (buffer >= 0)
		selectBuffer(buffer, step >= 0 && step < nstep ? step : undefined);
	else if (step >= 0 && step < nstep)
		selectStep(step);
	else if (link1.has("search"))
		jump(1);
	reading = false;
}

function listenPage() {
	byId("zoom-in").addEventListener("click", () => zoom(0.5, 1));
	byId("zoom-out").addEventListener("click", () => zoom(2, 1));
	byId("zoom-fit").addEventListener("click", fitView);
	byId("zoom-peak").addEventListener("click", () => selectStep(data.peakStep));
	new ResizeObserver(resize).observe(canvas.parentElement);
	addEventListener("hashchange", readLink);
	const recolour = () => {
		readTheme();
		draw(true);
	};
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
	matchMedia("print").addEventListener("change", () => {
		resize();
		recolour();
	});
}

function start() {
	const began = performance.now();
	byId("frontier").hidden = !byId("frontier").querySelector("svg");
	drawHeader();
	drawPeak();
	drawLoops();
	most.y = highest();
	map.view.y1 = fitTop();
	drawLegend();
	drawHead();
	listenPointer();
	listenKeys();
	listenTable();
	listenSearch();
	listenPage();
	resize();
	fillRows();
	showPinned();
	readLink();
	// for tests, and for anyone at the console
	window.stint = {
		data, selectStep: (n) => selectStep(n - 1), search: (text) => { find(text); jump(1); }, fit: fitView,
		state: () => ({ view: map.view, hover: map.hover, pinned: map.pinned, lit: map.lit, found: search.steps.length, rows: table.rows.length, drawMs, startMs: performance.now() - began }),
		place: (step, byte) => ({ x: xOf(step), y: yOf(byte) }),
	};
	window.stint.startMs = performance.now() - began;
	document.documentElement.dataset.state = "ready";
}

start();
