// SPDX-License-Identifier: MIT
// A map of colours over two axes, with a line on it and a point that can be moved.
import { bisectCenter, range } from "d3-array";
import { contours } from "d3-contour";
import { geoPath, geoTransform } from "d3-geo";
import { scaleLinear, scaleLog, scaleSequential } from "d3-scale";
import { interpolateViridis } from "d3-scale-chromatic";
import { line } from "d3-shape";
import { Plot } from "./chart";
import { short } from "./text";

export interface Field {
    x: number[];
    y: number[];
    /** Row by row, from the lowest y on. */
    values: number[];
    xLabel: string;
    yLabel: string;
    valueLabel: string;
    logarithmic: boolean; // in x
    boundary: [x: number, y: number][];
    boundaryLabel: string;
    selected: [x: number, y: number];
}

const levels = 24;

export class HeatMap extends Plot {
    private field?: Field;
    private x?: Scale;
    private y?: Scale;

    constructor(
        parent: HTMLElement,
        title: string,
        private readonly pick: (x: number, y: number) => void,
    ) {
        super(parent, title, { ratio: 0.66, tallest: 480 });
        this.surface.setAttribute("role", "application");
        this.surface.setAttribute("aria-roledescription", "map");
        this.surface.setAttribute("aria-label", title); // until it is drawn
        this.surface.addEventListener("click", (event) => {
            const at = this.nearest(event);
            if (at) this.pick(this.field!.x[at[0]], this.field!.y[at[1]]);
        });
        this.svg.selectAll("g.layer").data(["field", "marks", "key"]).join("g").attr("class", (name: string) => `layer ${name}`);
    }

    draw(field: Field): void {
        this.field = field;
        this.redraw();
    }

    protected redraw(): void {
        const field = this.field;
        if (!field || this.surface.clientWidth === 0) return;
        const place = this.place(1);
        const columns = field.x.length;
        const rows = field.y.length;
        const x = (field.logarithmic ? scaleLog() : scaleLinear()).domain([field.x[0], field.x[columns - 1]]).range([place.left, place.right]);
        const y = scaleLinear().domain([field.y[0], field.y[rows - 1]]).range([place.bottom, place.top + 8]);
        this.x = x;
        this.y = y;
        const most = Math.max(...field.values.filter(Number.isFinite), 1e-12);
        const colour = scaleSequential(interpolateViridis);
        const shade = colour.domain([0, most]);
        // The corners of the map are centres of cells: contours counts cells from their edges.
        const across = scaleLinear().domain([0.5, columns - 0.5]).range([place.left, place.right]);
        const up = scaleLinear().domain([0.5, rows - 0.5]).range([place.bottom, place.top + 8]);
        const path = geoPath(
            geoTransform({
                point(a, b) {
                    this.stream.point(across(a), up(b));
                },
            }),
        );
        const bands = contours().size([columns, rows]).thresholds(range(0, levels).map((level) => (most * level) / levels))(field.values);
        const clip = `M${place.left},${place.top + 8}H${place.right}V${place.bottom}H${place.left}Z`;
        this.svg.selectAll("clipPath").data([0]).join("clipPath").attr("id", "clip-map").selectAll("path").data([0]).join("path").attr("d", clip);
        const layer = this.svg.select("g.field").attr("clip-path", "url(#clip-map)");
        layer.selectAll("rect").data([0]).join("rect").attr("x", place.left).attr("y", place.top).attr("width", place.right - place.left)
            .attr("height", place.bottom - place.top).attr("fill", shade(0));
        layer.selectAll("path.band").data(bands).join("path").attr("class", "band").attr("d", path)
            .attr("fill", (band: { value: number }) => shade(band.value + (0.5 * most) / levels));
        const boundary = line<[number, number]>().defined(([a]) => Number.isFinite(a)).x(([a]) => x(a)).y(([, b]) => y(b));
        layer.selectAll("path.boundary").data([field.boundary]).join("path").attr("class", "boundary").attr("d", boundary);
        const [atX, atY] = field.selected;
        this.svg.select("g.marks").selectAll("circle").data([0, 1]).join("circle")
            .attr("class", (ring: number) => (ring ? "ring inner" : "ring")).attr("r", (ring: number) => (ring ? 5 : 7)).attr("cx", x(atX)).attr("cy", y(atY));
        this.axes(place, x, y, { x: field.xLabel, y: field.yLabel });
        this.drawKey(place.right, most, shade, field);
        const value = field.values[bisectCenter(field.y, atY) * columns + bisectCenter(field.x, atX)];
        this.surface.setAttribute(
            "aria-label",
            `${this.title}: ${field.xLabel} ${short(atX)}, ${field.yLabel} ${short(atY)}, ${field.valueLabel} ${short(value)}. Arrow keys move the point.`,
        );
    }

    /** The scale of colours, above the map on the right. */
    private drawKey(right: number, most: number, shade: (value: number) => string, field: Field): void {
        const key = this.svg.select("g.key");
        const width = 110;
        right -= 32;
        const steps = range(0, 40);
        key.selectAll("rect").data(steps).join("rect").attr("x", (i: number) => right - width + (i * width) / steps.length).attr("y", 18)
            .attr("width", width / steps.length + 0.5).attr("height", 9).attr("fill", (i: number) => shade((most * i) / (steps.length - 1)));
        key.selectAll("text").data([
            { text: field.valueLabel, x: right + 32, y: 12, anchor: "end" },
            { text: "0", x: right - width - 5, y: 27, anchor: "end" },
            { text: short(most), x: right + 5, y: 27, anchor: "start" },
            { text: field.boundary.length > 1 ? field.boundaryLabel : "", x: 30, y: 27, anchor: "start" },
        ]).join("text").attr("x", (d: { x: number }) => d.x).attr("y", (d: { y: number }) => d.y)
            .attr("text-anchor", (d: { anchor: string }) => d.anchor).text((d: { text: string }) => d.text);
        key.selectAll("path").data(field.boundary.length > 1 ? [0, 1] : []).join("path").attr("class", (i: number) => (i ? "boundary" : "boundary-ground")).attr("d", "M4,23H24");
    }

    private nearest(event: MouseEvent): [number, number] | undefined {
        if (!this.field || !this.x || !this.y) return undefined;
        const box = this.surface.getBoundingClientRect();
        return [
            bisectCenter(this.field.x, this.x.invert(event.clientX - box.left)),
            bisectCenter(this.field.y, this.y.invert(event.clientY - box.top)),
        ];
    }

    protected point(event: PointerEvent): void {
        const at = this.nearest(event);
        const field = this.field;
        if (!at || !field) return;
        const [i, j] = at;
        const place = this.size();
        this.tell(this.x!(field.x[i]), this.y!(field.y[j]), [
            [field.xLabel, short(field.x[i])],
            [field.yLabel, short(field.y[j])],
            [field.valueLabel, short(field.values[j * field.x.length + i])],
        ], place);
    }

    private size() {
        const { width, height } = this.svg.node().getBoundingClientRect();
        return { width, height, left: 0, top: 0, right: width, bottom: height };
    }

    protected press(event: KeyboardEvent): void {
        const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
        const step = steps[event.key];
        const field = this.field;
        if (!step || !field) return;
        event.preventDefault();
        const move = (values: number[], value: number, by: number) =>
            values[Math.max(0, Math.min(values.length - 1, bisectCenter(values, value) + by))];
        this.pick(move(field.x, field.selected[0], step[0]), move(field.y, field.selected[1], step[1]));
    }

    protected leave(): void {
        this.note.hidden = true;
    }
}
