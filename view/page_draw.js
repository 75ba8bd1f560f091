// Drawing the map: rectangles on a layer of their own, redrawn when the view changes; curves, marks
// and highlights over it.

const ctx = canvas.getContext("2d");
const layer = document.createElement("canvas");
const layerCtx = layer.getContext("2d");
let theme = null;
let layerFor = ""; // what the layer shows
let drawMs = 0; // the last full drawing of the layer
let settle = 0;

// Buffers by how they are filled: kind, then kind recomputed.
const byFill = Array.from({ length: 14 }, () => []);
for (let b = 0; b < nbuffer; b++)
	byFill[bufferKind[b] + 7 * bufferAgain[b]].push(b);

function hatch(colour, scale) {
	const size = Math.round(7 * scale), tile = document.createElement("canvas"), t = tile.getContext("2d");
	tile.width = tile.height = size;
	t.strokeStyle = colour;
	t.lineWidth = 1.6 * scale;
	for (const d of [-size, 0, size]) {
		t.beginPath();
		t.moveTo(d - 1, size + 1);
		t.lineTo(d + size + 1, -1);
		t.stroke();
	}
	return layerCtx.createPattern(tile, "repeat");
}

function mix(a, b, share) {
	const part = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
	return `rgb(${[0, 1, 2].map((i) => Math.round(part(a, i) * share + part(b, i) * (1 - share))).join(",")})`;
}

function readTheme() {
	const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(`--${name}`).trim();
	theme = { fill: [], label: [], hatch: [] };
	for (const name of ["panel", "plot", "grid", "ink", "soft", "line", "accent", "warn", "again", "keep", "live", "forward", "backward", "update"])
		theme[name] = get(name);
	for (let k = 0; k < 7; k++) {
		const c = get(`k${k}`);
		theme.fill[k] = c;
		theme.fill[k + 7] = mix(c, theme.plot, 0.4);
		theme.hatch[k] = hatch(mix(c, theme.plot, 0.85), map.scale);
	}
	theme.font = `11px ${style.fontFamily}`;
	layerFor = "";
}

function drawLabel(b, x, y, w, h) {
	const c = layerCtx, text = bufferName(b), fit = Math.floor((w / map.scale - 10) / 6.2);
	if (fit < 4)
		return;
	c.fillStyle = bufferAgain[b] ? theme.ink : "#fff";
	c.fillText(text.length > fit ? `${text.slice(0, Math.floor((fit - 1) / 3))}…${text.slice(text.length - Math.ceil((2 * (fit - 1)) / 3))}` : text, Math.max(x, 0) + 5 * map.scale, y + h / 2);
}

function drawRectangles() {
	const c = layerCtx, v = map.view, began = performance.now();
	const sx = layer.width / (v.x1 - v.x0), sy = layer.height / (v.y1 - v.y0), gap = Math.max(1, Math.round(map.scale * 0.75));
	const labels = [];
	c.fillStyle = theme.plot;
	c.fillRect(0, 0, layer.width, layer.height);
	for (let f = 0; f < 14; f++) {
		c.fillStyle = theme.fill[f];
		const hatched = [];
		for (const b of byFill[f]) {
			const low = bufferOffset[b], high = low + bufferBytes[b];
			if (bufferFirst[b] >= v.x1 || bufferLast[b] + 1 <= v.x0 || low >= v.y1 || high <= v.y0)
				continue;
			const x = Math.max((bufferFirst[b] - v.x0) * sx, -4), y = Math.max(layer.height - (high - v.y0) * sy, -4);
			let w = Math.min((bufferLast[b] + 1 - v.x0) * sx, layer.width + 4) - x;
			let h = Math.min(layer.height - (low - v.y0) * sy, layer.height + 4) - y;
			w = w > 4 * gap ? w - gap : Math.max(w, 0.5);
			h = h > 4 * gap ? h - gap : Math.max(h, 0.5);
			c.fillRect(x, y, w, h);
			if (f >= 7 && w > 3 * map.scale && h > 3 * map.scale)
				hatched.push(x, y, w, h);
			if (w > 60 * map.scale && h > 13 * map.scale && labels.length < 600)
				labels.push([b, x, y, w, h]);
		}
		if (f >= 7)
			c.fillStyle = theme.hatch[f - 7];
		for (let i = 0; i < hatched.length; i += 4)
			c.fillRect(hatched[i], hatched[i + 1], hatched[i + 2], hatched[i + 3]);
	}
	c.font = theme.font.replace(/^\d+/, String(11 * map.scale));
	c.textBaseline = "middle";
	for (const l of labels)
		drawLabel(...l);
	drawMs = performance.now() - began;
}

// The layer as the view wants it. While the view moves over a large plan, the old picture is
// stretched and the new one drawn when it rests.
function prepareLayer(rest) {
	const v = map.view, w = Math.round(plotWidth() * map.scale), h = Math.round(plotHeight() * map.scale);
	const want = [v.x0, v.x1, v.y0, v.y1, w, h].join();
	if (want === layerFor)
		return null;
	if (!rest && layerFor && drawMs > 25 && layer.width === w && layer.height === h) {
		clearTimeout(settle);
		settle = setTimeout(() => draw(true), 90);
		return layerFor.split(",").map(Number);
	}
	if (layer.width !== w || layer.height !== h) {
		layer.width = w;
		layer.height = h;
	}
	layerFor = want;
	drawRectangles();
	return null;
}

function blitLayer(old) {
	const w = plotWidth(), h = plotHeight();
	if (!old) {
		ctx.drawImage(layer, MARGIN.left, MARGIN.top, w, h);
		return;
	}
	ctx.fillStyle = theme.plot;
	ctx.fillRect(MARGIN.left, MARGIN.top, w, h);
	ctx.drawImage(layer, xOf(old[0]), yOf(old[3]), xOf(old[1]) - xOf(old[0]), yOf(old[2]) - yOf(old[3]));
}

function niceStep(span, room, binary) {
	const least = span / Math.max(1, room);
	if (binary)
		return 2 ** Math.ceil(Math.log2(Math.max(least, 1)));
	const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
	return [1, 2, 5, 10].map((m) => m * ten).find((t) => t >= least && t >= 1);
}

function drawAxes() {
	const v = map.view, bottom = MARGIN.top + plotHeight(), right = MARGIN.left + plotWidth();
	ctx.font = theme.font;
	ctx.fillStyle = theme.soft;
	ctx.strokeStyle = theme.line;
	ctx.textAlign = "right";
	ctx.textBaseline = "middle";
	const dy = niceStep(v.y1 - v.y0, plotHeight() / 44, true);
	for (let y = Math.ceil(v.y0 / dy) * dy; y <= v.y1; y += dy) {
		ctx.fillText(human(y), MARGIN.left - 9, yOf(y));
		ctx.fillRect(MARGIN.left - 5, Math.round(yOf(y)), 5, 1);
	}
	ctx.textAlign = "center";
	ctx.textBaseline = "top";
	const dx = niceStep(v.x1 - v.x0, plotWidth() / 84, false);
	for (let n = Math.max(1, Math.ceil((v.x0 + 0.5) / dx) * dx), last = -Infinity; n - 0.5 <= v.x1; n = n === 1 && dx > 1 ? dx : n + dx) {
		const x = xOf(n - 0.5);
		if (x - last > 40 && x < right - 14)
			ctx.fillText(count(n), last = x, bottom + 27);
	}
	ctx.textAlign = "right";
	ctx.fillText("step", MARGIN.left - 9, bottom + 27);
	ctx.strokeRect(MARGIN.left - 0.5, MARGIN.top - 0.5, plotWidth() + 1, plotHeight() + 1);
}

// Phases of the steps in each pixel column, by share; below, where steps are recomputations.
function drawPhases() {
	const top = MARGIN.top + plotHeight() + 4, w = plotWidth(), colours = [theme.forward, theme.backward, theme.update];
	const draw1 = (x, width, s0, s1) => {
		const n = [0, 0, 0];
		let again = 0;
		for (let s = s0; s < s1; s++) {
			n[stepPhase(s)]++;
			again += recomputeOf[s] >= 0 ? 1 : 0;
		}
		for (let p = 0, y = top; p < 3; p++) {
			const h = (13 * n[p]) / (s1 - s0);
			ctx.fillStyle = colours[p];
			ctx.fillRect(x, y, width, h);
			y += h;
		}
		if (again) {
			ctx.globalAlpha = 0.35 + 0.65 * (again / (s1 - s0));
			ctx.fillStyle = theme.again;
			ctx.fillRect(x, top + 14, width, 5);
			ctx.globalAlpha = 1;
		}
	};
	const perPixel = (map.view.x1 - map.view.x0) / w;
	if (perPixel < 1)
		for (let s = Math.floor(map.view.x0); s < Math.min(nstep, map.view.x1); s++) {
			const a = Math.max(xOf(s), MARGIN.left), b = Math.min(xOf(s + 1), MARGIN.left + w);
			draw1(a, b - a, s, s + 1);
		}
	else
		for (let x = 0; x < w; x++) {
			const s0 = Math.floor(map.view.x0 + x * perPixel), s1 = Math.min(nstep, Math.max(s0 + 1, Math.floor(map.view.x0 + (x + 1) * perPixel)));
			if (s0 < s1)
				draw1(MARGIN.left + x, 1, s0, s1);
		}
}

// A staircase over the steps; with many steps a pixel, the highest of each.
function curvePath(values) {
	const w = plotWidth(), perPixel = (map.view.x1 - map.view.x0) / w;
	ctx.beginPath();
	if (perPixel <= 1) {
		for (let s = Math.max(0, Math.floor(map.view.x0)); s < Math.min(nstep, map.view.x1); s++) {
			ctx.lineTo(xOf(s), yOf(values[s]));
			ctx.lineTo(xOf(s + 1), yOf(values[s]));
		}
		return;
	}
	for (let x = 0; x < w; x++) {
		const s0 = Math.floor(map.view.x0 + x * perPixel), s1 = Math.min(nstep, Math.floor(map.view.x0 + (x + 1) * perPixel));
		let high = -1;
		for (let s = s0; s < s1; s++)
			high = Math.max(high, values[s]);
		if (high >= 0)
			ctx.lineTo(MARGIN.left + x, yOf(high));
	}
}

function strokeCurve(values, colour, width, dash) {
	curvePath(values);
	ctx.lineJoin = "round";
	ctx.setLineDash([]);
	ctx.strokeStyle = theme.panel;
	ctx.lineWidth = width + 2;
	ctx.globalAlpha = 0.75;
	ctx.stroke();
	ctx.globalAlpha = 1;
	ctx.setLineDash(dash);
	ctx.strokeStyle = colour;
	ctx.lineWidth = width;
	ctx.stroke();
	ctx.setLineDash([]);
}

// Text on a line, readable over anything.
function drawNote(text, x, y, colour, align, baseline) {
	ctx.textAlign = align;
	ctx.textBaseline = baseline;
	ctx.lineJoin = "round";
	ctx.lineWidth = 4;
	ctx.strokeStyle = theme.panel;
	ctx.strokeText(text, x, y);
	ctx.fillStyle = colour;
	ctx.fillText(text, x, y);
}

function drawLevel(bytes, colour, text, width, above) {
	const y = yOf(bytes), right = MARGIN.left + plotWidth();
	if (bytes < map.view.y0 || bytes > map.view.y1)
		return;
	ctx.strokeStyle = colour;
	ctx.lineWidth = width;
	ctx.beginPath();
	ctx.moveTo(MARGIN.left, y);
	ctx.lineTo(right, y);
	ctx.stroke();
	drawNote(text, right - 6, y + (above ? -4 : 4), colour, "right", above ? "bottom" : "top");
}

function drawColumn(step, colour, dash) {
	const x = xOf(step + 0.5);
	if (step + 0.5 < map.view.x0 || step + 0.5 > map.view.x1)
		return false;
	ctx.setLineDash(dash);
	ctx.strokeStyle = colour;
	ctx.lineWidth = 1;
	ctx.beginPath();
	ctx.moveTo(x, MARGIN.top);
	ctx.lineTo(x, MARGIN.top + plotHeight() + 23);
	ctx.stroke();
	ctx.setLineDash([]);
	return true;
}

function rectangleOf(b) {
	const x = xOf(bufferFirst[b]), y = yOf(bufferOffset[b] + bufferBytes[b]);
	return [x, y, xOf(bufferLast[b] + 1) - x, yOf(bufferOffset[b]) - y];
}

function dim() {
	ctx.fillStyle = theme.plot;
	ctx.globalAlpha = 0.7;
	ctx.fillRect(MARGIN.left, MARGIN.top, plotWidth(), plotHeight());
	ctx.globalAlpha = 1;
}

// Some buffers at full strength again; outlined, those that are pinned.
function fillAgain(buffers, outline) {
	for (const b of buffers) {
		const [x, y, w, h] = rectangleOf(b);
		if (x > MARGIN.left + plotWidth() || x + w < MARGIN.left)
			continue;
		ctx.fillStyle = theme.fill[bufferKind[b]];
		ctx.fillRect(x, y, Math.max(w, 1.5), Math.max(h, 1.5));
		if (outline || w > 6) {
			ctx.strokeStyle = theme.ink;
			ctx.lineWidth = outline ? 1.25 : 0.5;
			ctx.strokeRect(x, y, Math.max(w, 1.5), Math.max(h, 1.5));
		}
	}
}

// The steps that read what is pinned: a tick in the lifetime that each reads.
function drawReaders() {
	ctx.fillStyle = theme.ink;
	for (const s of map.lit.steps) {
		const b = map.lit.buffers.find((k) => bufferFirst[k] <= s && s <= bufferLast[k]);
		if (b === undefined || s + 1 < map.view.x0 || s > map.view.x1)
			continue;
		const [, y, , h] = rectangleOf(b), x = xOf(s + 0.5);
		ctx.fillRect(x - 0.75, y, 1.5, Math.max(h, 3));
		ctx.beginPath();
		ctx.moveTo(x - 4, y - 6);
		ctx.lineTo(x + 4, y - 6);
		ctx.lineTo(x, y);
		ctx.fill();
	}
}

function drawHighlights() {
	ctx.save();
	ctx.beginPath();
	ctx.rect(MARGIN.left, MARGIN.top, plotWidth(), plotHeight());
	ctx.clip();
	if (map.lit || map.found)
		dim();
	if (map.found)
		fillAgain(map.found.buffers, false);
	if (map.lit) {
		fillAgain(map.lit.buffers, true);
		drawReaders();
	}
	if (map.hover && map.hover.buffer >= 0) {
		const [x, y, w, h] = rectangleOf(map.hover.buffer);
		ctx.strokeStyle = theme.ink;
		ctx.lineWidth = 2;
		ctx.strokeRect(x, y, Math.max(w, 2), Math.max(h, 2));
	}
	ctx.restore();
}

function drawKeep() {
	const text = `keep everything (peak ${human(data.keep.peak)})`, w = ctx.measureText(text).width;
	const x = MARGIN.left + plotWidth() * 0.66, s1 = Math.min(nstep - 1, Math.ceil(stepAt(x + w + 8)));
	let high = 0;
	strokeCurve(keepLive, theme.keep, 1.75, [6, 4]);
	for (let s = Math.max(0, Math.floor(stepAt(x - 8))); s <= s1; s++)
		high = Math.max(high, keepLive[s]);
	// above the curve, where that is clear of the budget's own text
	if (high > map.view.y1)
		drawNote(`↑ ${text}`, x, MARGIN.top + 6, theme.keep, "left", "top");
	else if (high > data.arena * 1.12 && yOf(high) > MARGIN.top + 18)
		drawNote(text, x, yOf(high) - 6, theme.keep, "left", "bottom");
}

function drawLines() {
	ctx.save();
	ctx.beginPath();
	ctx.rect(MARGIN.left, 0, plotWidth(), map.height);
	ctx.clip();
	ctx.font = theme.font;
	ctx.save();
	ctx.beginPath();
	ctx.rect(MARGIN.left, MARGIN.top, plotWidth(), plotHeight());
	ctx.clip();
	if (map.show.keep && keepLive)
		drawKeep();
	if (map.show.live)
		strokeCurve(stepLive, theme.live, 1.5, []);
	ctx.restore();
	drawLevel(data.arena, theme.soft, `arena ${human(data.arena)}`, 1, false);
	if (data.budget !== null && map.show.budget)
		drawLevel(data.budget, theme.warn, `budget ${human(data.budget)}`, 1.75, true);
	if (nstep && drawColumn(data.peakStep, theme.ink, [2, 3]))
		drawNote(`peak ${human(data.peak)}, step ${count(data.peakStep + 1)}`, Math.min(Math.max(xOf(data.peakStep + 0.5), MARGIN.left + 80), MARGIN.left + plotWidth() - 80), MARGIN.top - 4, theme.ink, "center", "bottom");
	if (map.pinned)
		drawColumn(map.pinned.step, theme.accent, []);
	if (map.hover)
		drawColumn(map.hover.step, theme.soft, []);
	ctx.restore();
}

function draw(rest) {
	map.pending = false;
	if (!theme)
		readTheme();
	ctx.setTransform(map.scale, 0, 0, map.scale, 0, 0);
	ctx.clearRect(0, 0, map.width, map.height);
	blitLayer(prepareLayer(rest));
	drawHighlights();
	drawAxes();
	drawPhases();
	drawLines();
}

// Draws before the next frame.
function redraw() {
	if (!map.pending && map.width) {
		map.pending = true;
		requestAnimationFrame(() => draw(false));
	}
}

function resize() {
	const box = canvas.parentElement.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
	if (!box.width || (box.width === map.width && box.height === map.height && scale === map.scale))
		return;
	map.width = box.width;
	map.height = box.height;
	if (scale !== map.scale)
		theme = null;
	map.scale = scale;
	canvas.width = Math.round(box.width * scale);
	canvas.height = Math.round(box.height * scale);
	draw(true);
}
