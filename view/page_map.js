// The arena map's state and geometry: what is in view, under the pointer, pinned or searched for.

const canvas = document.getElementById("canvas");
const tip = document.getElementById("tip");
const MARGIN = { left: 78, right: 16, top: 20, bottom: 52 };
const most = { x: Math.max(nstep, 1), y: 1 };
const map = {
	width: 0, height: 0, scale: 1, // CSS pixels; device pixels per CSS pixel
	view: { x0: 0, x1: most.x, y0: 0, y1: 1 }, // steps; bytes
	show: { live: true, keep: true, budget: true },
	hover: null, // {step, buffer}, buffer -1 for none
	pinned: null, // {step, buffer}: buffer -1 when a step is pinned
	found: null, // {buffers: Uint8Array, steps: Uint8Array} of a search
	lit: null, // buffers and reading steps of what is pinned
	pending: false,
};

// The highest address worth showing.
function highest() {
	let top = Math.max(data.arena, 1);
	if (map.show.budget && data.budget !== null)
		top = Math.max(top, Math.min(data.budget, data.arena * 4));
	if (map.show.keep && data.keep)
		top = Math.max(top, data.keep.peak);
	return top * 1.03;
}

// What is shown at first: never so much of what keeping everything needs that the arena gets small.
function fitTop() {
	return Math.min(most.y, Math.max(data.arena, 1) * 2.25);
}

const plotWidth = () => Math.max(1, map.width - MARGIN.left - MARGIN.right);
const plotHeight = () => Math.max(1, map.height - MARGIN.top - MARGIN.bottom);
const xOf = (step) => MARGIN.left + ((step - map.view.x0) / (map.view.x1 - map.view.x0)) * plotWidth();
const yOf = (byte) => MARGIN.top + (1 - (byte - map.view.y0) / (map.view.y1 - map.view.y0)) * plotHeight();
const stepAt = (x) => map.view.x0 + ((x - MARGIN.left) / plotWidth()) * (map.view.x1 - map.view.x0);
const byteAt = (y) => map.view.y0 + (1 - (y - MARGIN.top) / plotHeight()) * (map.view.y1 - map.view.y0);

function setView(x0, x1, y0, y1) {
	const least = { x: Math.min(4, most.x), y: most.y / 1e6 };
	const w = Math.min(Math.max(x1 - x0, least.x), most.x), h = Math.min(Math.max(y1 - y0, least.y), most.y);
	const left = Math.min(Math.max(x0, 0), most.x - w), low = Math.min(Math.max(y0, 0), most.y - h);
	map.view = { x0: left, x1: left + w, y0: low, y1: low + h };
	redraw(true);
}

function fitView() {
	most.y = highest();
	setView(0, most.x, 0, fitTop());
}

// Keeps the share of the picture in view when the highest address changes.
function rescale() {
	const whole = map.view.y0 === 0 && map.view.y1 >= fitTop();
	most.y = highest();
	setView(map.view.x0, map.view.x1, map.view.y0, whole ? fitTop() : map.view.y1);
}

function zoom(fx, fy, atX, atY) {
	const v = map.view, x = atX === undefined ? (v.x0 + v.x1) / 2 : atX, y = atY === undefined ? (v.y0 + v.y1) / 2 : atY;
	setView(x - (x - v.x0) * fx, x + (v.x1 - x) * fx, y - (y - v.y0) * fy, y + (v.y1 - y) * fy);
}

// Moves the view, at its zoom, so that a step and a range of addresses are in it.
function reveal(step, low, high) {
	const v = map.view, w = v.x1 - v.x0, h = v.y1 - v.y0;
	let { x0, y0 } = v;
	if (step < v.x0 + w * 0.05 || step > v.x1 - w * 0.05)
		x0 = step - w / 2;
	if (low !== undefined && (low < v.y0 || high > v.y1))
		y0 = (low + high) / 2 - h / 2;
	setView(x0, x0 + w, y0, y0 + h);
}

function bufferAt(step, byte) {
	// in an in-place pair's shared step the later one is drawn on top
	for (let b = nbuffer - 1; b >= 0; b--)
		if (bufferFirst[b] <= step && step <= bufferLast[b] && bufferOffset[b] <= byte && byte < bufferOffset[b] + bufferBytes[b])
			return b;
	return -1;
}

function pin(next) {
	map.pinned = next;
	map.lit = null;
	if (next) {
		const tensor = next.buffer >= 0 ? bufferOf[next.buffer] : -1;
		if (tensor >= 0)
			map.lit = { buffers: lifetimesOf(tensor), steps: stepsReading(tensor) };
		else if (next.buffer >= 0)
			map.lit = { buffers: [next.buffer], steps: [] };
		else {
			const buffers = buffersFrom(next.step), op = stepOp[next.step];
			for (let i = opReadsAt[op]; i < opReadsAt[op + 1]; i++)
				buffers.push(lifetimeAt(opReads[i], next.step));
			map.lit = { buffers: buffers.filter((b) => b >= 0), steps: [] };
		}
	}
	redraw(false);
	showPinned();
}

function selectStep(step) {
	const s = Math.min(Math.max(step, 0), nstep - 1);
	reveal(s + 0.5);
	pin({ step: s, buffer: -1 });
}

function selectBuffer(buffer, step) {
	const s = step === undefined ? bufferFirst[buffer] : step;
	reveal(s + 0.5, bufferOffset[buffer], bufferOffset[buffer] + bufferBytes[buffer]);
	pin({ step: s, buffer });
}

function hover(next) {
	const was = map.hover;
	if ((was === null) === (next === null) && (!was || (was.step === next.step && was.buffer === next.buffer)))
		return;
	map.hover = next;
	redraw(false);
	markHover();
}

function tipRows(step, buffer) {
	if (buffer < 0)
		return [["step", `${count(step + 1)} · ${PHASES[stepPhase(step)]}`], ["node", stepName(step)],
			["live", exactBytes(stepLive[step])]].concat(stepWhen(step) ? [["runs when", stepWhen(step)]] : [],
			keepLive ? [["keep all", `${human(keepLive[step])} at equal progress`]] : []);
	const tensor = bufferOf[buffer], first = bufferFirst[buffer];
	const rows = [["size", exactBytes(bufferBytes[buffer])], ["offset", count(bufferOffset[buffer])],
		["steps", `${count(first + 1)} – ${count(bufferLast[buffer] + 1)}`]];
	if (tensor < 0 || !isResident(tensor))
		rows.push([tensor < 0 ? "used by" : "made by", stepName(first)]);
	if (bufferAgain[buffer])
		rows.push(["", `recompute of step ${count(recomputeOf[first] + 1)}`]);
	rows.push(["here", `step ${count(step + 1)}, ${stepName(step)}`]);
	return rows;
}

function showTip(x, y) {
	if (!map.hover) {
		tip.hidden = true;
		return;
	}
	const { step, buffer } = map.hover, list = element("dl", { class: "pairs" });
	tip.replaceChildren();
	if (buffer >= 0)
		tip.append(element("span", { class: "chip" }, swatch(bufferKind[buffer]), KINDS[bufferKind[buffer]]), element("div", { class: "name" }, bufferName(buffer)));
	for (const [key, value] of tipRows(step, buffer))
		list.append(element("dt", null, key), element("dd", null, value));
	tip.append(list);
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	tip.style.left = `${x + 18 + box.width > map.width ? Math.max(0, x - 14 - box.width) : x + 18}px`;
	tip.style.top = `${Math.max(0, Math.min(y + 14, map.height - box.height))}px`;
}

function pointerPlace(event) {
	const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
	const inside = x >= MARGIN.left && x < MARGIN.left + plotWidth() && y >= MARGIN.top && y < map.height;
	const step = Math.min(Math.max(Math.floor(stepAt(x)), 0), nstep - 1);
	const inPlot = y < MARGIN.top + plotHeight();
	return { x, y, inside: inside && nstep > 0, step, buffer: inside && inPlot ? bufferAt(step, byteAt(y)) : -1 };
}

function listenPointer() {
	let drag = null;
	canvas.addEventListener("pointerdown", (event) => {
		if (event.button === 0) {
			drag = { x: event.clientX, y: event.clientY, view: map.view, moved: false };
			canvas.setPointerCapture(event.pointerId);
		}
	});
	canvas.addEventListener("pointermove", (event) => {
		if (drag) {
			const dx = event.clientX - drag.x, dy = event.clientY - drag.y, v = drag.view;
			drag.moved = drag.moved || Math.abs(dx) + Math.abs(dy) > 4;
			if (drag.moved) {
				const mx = (dx / plotWidth()) * (v.x1 - v.x0), my = (dy / plotHeight()) * (v.y1 - v.y0);
				canvas.classList.add("dragging");
				setView(v.x0 - mx, v.x1 - mx, v.y0 + my, v.y1 + my);
			}
		}
		const at = pointerPlace(event);
		hover(at.inside && !(drag && drag.moved) ? { step: at.step, buffer: at.buffer } : null);
		showTip(at.x, at.y);
	});
	canvas.addEventListener("pointerup", (event) => {
		const at = pointerPlace(event);
		if (drag && !drag.moved && at.inside)
			pin({ step: at.step, buffer: at.buffer });
		drag = null;
		canvas.classList.remove("dragging");
	});
	canvas.addEventListener("pointercancel", () => { drag = null; });
	canvas.addEventListener("pointerleave", () => {
		hover(null);
		showTip(0, 0);
	});
	canvas.addEventListener("dblclick", fitView);
	canvas.addEventListener("wheel", (event) => {
		const at = pointerPlace(event), delta = (event.deltaY || event.deltaX) * (event.deltaMode ? 20 : 1);
		const f = Math.exp(Math.min(Math.max(delta, -400), 400) * 0.002);
		event.preventDefault();
		if (!event.shiftKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			const shift = (event.deltaX / plotWidth()) * (map.view.x1 - map.view.x0);
			setView(map.view.x0 + shift, map.view.x1 + shift, map.view.y0, map.view.y1);
		} else
			zoom(event.shiftKey ? 1 : f, event.shiftKey || event.ctrlKey ? f : 1, stepAt(at.x), byteAt(at.y));
		hover(at.inside ? { step: at.step, buffer: at.buffer } : null);
		showTip(at.x, at.y);
	}, { passive: false });
}

// Up and down: the next buffer above or below the pinned one at its step.
function stepBuffer(up) {
	const { step, buffer } = map.pinned || { step: data.peakStep, buffer: -1 };
	const from = buffer >= 0 ? bufferOffset[buffer] : up ? -1 : Infinity;
	let best = -1;
	for (let b = 0; b < nbuffer; b++) {
		const o = bufferOffset[b];
		if (bufferFirst[b] > step || step > bufferLast[b] || (up ? o <= from : o >= from))
			continue;
		if (best < 0 || (up ? o < bufferOffset[best] : o > bufferOffset[best]))
			best = b;
	}
	if (best >= 0)
		selectBuffer(best, step);
}

function listenKeys() {
	canvas.addEventListener("keydown", (event) => {
		const at = map.pinned ? map.pinned.step : data.peakStep, far = event.shiftKey ? 10 : 1;
		const actions = {
			ArrowLeft: () => selectStep(at - far), ArrowRight: () => selectStep(at + far),
			ArrowUp: () => stepBuffer(true), ArrowDown: () => stepBuffer(false),
			Home: () => selectStep(0), End: () => selectStep(nstep - 1),
			"+": () => zoom(0.6, 1, at + 0.5), "=": () => zoom(0.6, 1, at + 0.5), "-": () => zoom(1 / 0.6, 1, at + 0.5),
			0: fitView, p: () => selectStep(data.peakStep),
		};
		if (actions[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
			event.preventDefault();
			actions[event.key]();
		}
	});
}
