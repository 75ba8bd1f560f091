// Loops that are one node: what is kept of their turns, and what runs again because of it.

for (const l of data.loops)
	l.at ??= [];
const loopOf = new Map(data.loops.map((l) => [l.op, l]));

const turnsOf = (l) => `${l.ends_early ? "at most " : ""}${plural(l.turns, "turn")}`;

// What is kept for a loop's backward pass, and what runs again because of it.
function loopWords(l) {
	const bytes = human(l.kept_bytes);
	return {
		nothing: ["nothing is kept"],
		inside: [`values inside turns, ${bytes}`, "no turn runs again"],
		carries: [`carries after each turn, ${bytes}`, "a turn back begins with the turn"],
		places: [`carries in ${plural(l.places, "place")}, ${bytes}`,
			`a turn back begins with the turn, and ${plural(l.again, "turn")} go forward again: the least for so many places (Revolve)`],
	}[l.keeps];
}

const svg = (tag, attributes) => {
	const e = document.createElementNS(byId("svg").namespaceURI, tag);
	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	return e;
};

// The turns as a bar: filled where something of each is kept, with a line for each carry that is kept before a turn.
function drawTurns(l) {
	const WIDE = 1000, HIGH = 20, x = (turn) => (WIDE * turn) / l.turns;
	const words = l.keeps === "places" ? `carries are kept before ${plural(l.at.length, "turn")}: ${l.at.slice(0, 8).map((t) => t + 1).join(", ")}${l.at.length > 8 ? ", ..." : ""}` : loopWords(l)[0];
	const e = svg("svg", { class: `turns ${l.keeps}`, viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img", "aria-label": words });
	e.append(svg("title", {}), svg("rect", { width: WIDE, height: HIGH }));
	e.firstChild.textContent = words;
	if (l.at.length)
		e.append(svg("path", { d: l.at.map((t) => `M${x(t).toFixed(2)} 0V${HIGH}`).join(""), "vector-effect": "non-scaling-stroke" }));
	return e;
}

function drawLoops() {
	const backward = data.loops.filter((l) => data.op.phase[l.op] === 1);
	const shown = backward.length ? backward : data.loops;
	byId("loops-panel").hidden = !shown.length;
	for (const l of shown) {
		const [kept, again] = loopWords(l), first = opFirstStep[l.op];
		byId("loops").append(element("div", { class: "loop" },
			element("p", { class: "name" }, first >= 0 ? link(data.op.name[l.op], () => selectStep(first)) : data.op.name[l.op]),
			drawTurns(l),
			element("p", { class: "note" }, element("b", null, turnsOf(l)), `, ${human(l.turn_bytes)} for one. `,
				...(backward.length ? [element("b", null, `Kept: ${kept}`), again ? `; ${again}.` : "."] : []))));
	}
}
