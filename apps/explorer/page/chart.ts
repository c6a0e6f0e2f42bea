// SPDX-License-Identifier: MIT
// A chart of curves, dots and areas over two axes. D3 has the scales, axes and shapes.
import { bisectCenter } from "d3-array";
import { axisBottom, axisLeft } from "d3-axis";
import { scaleLinear, scaleLog } from "d3-scale";
import { select } from "d3-selection";
import { area, line } from "d3-shape";
import { short } from "./text";

export interface Series {
    label: string;
    /** Number of its colour in style.css. */
    colour: number;
    kind: "line" | "dashes" | "dots" | "area" | "steps";
    points: [x: number, y: number][];
    /** Not one that the cursor reads. */
    silent?: boolean;
    /** Not in the legend. */
    unnamed?: boolean;
}

/** A line across the chart, or a point if it has both coordinates. */
export interface Mark {
    x?: number;
    y?: number;
    label: string;
    colour?: number;
    /** What is said where the label has no room. */
    brief?: string;
    /** The text of a horizontal line stands below it. */
    below?: boolean;
}

export interface AxisOf {
    label: string;
    logarithmic?: boolean;
    /** Otherwise that of the data. */
    domain?: [number, number];
}

export interface Drawing {
    x: AxisOf;
    y: AxisOf;
    series: Series[];
    marks?: Mark[];
}

type Place = { width: number; height: number; left: number; top: number; right: number; bottom: number };

const visible = (value: number, axis: AxisOf): boolean => Number.isFinite(value) && (!axis.logarithmic || value > 0);

/** The range of the data, from 0 on unless the axis is logarithmic. */
function domain(axis: AxisOf, values: number[]): [number, number] {
    if (axis.domain) return axis.domain;
    const seen = values.filter((value) => visible(value, axis));
    let low = Infinity;
    let high = -Infinity;
    for (const value of seen) {
        if (value < low) low = value;
        if (value > high) high = value;
    }
    if (!(high > -Infinity)) return axis.logarithmic ? [0.1, 1] : [0, 1];
    if (axis.logarithmic) return [Math.max(low, high * 1e-12), high > low ? high : low * 10];
    return [Math.min(0, low), high > Math.min(0, low) ? high : 1];
}

const textWidth = (text: string): number => 6.6 * text.length + 42;

export abstract class Plot {
    readonly root: HTMLElement;
    protected readonly svg: Selection;
    protected readonly surface: HTMLElement;
    protected readonly note: HTMLElement;

    constructor(
        parent: HTMLElement,
        protected readonly title: string,
        private readonly shape: { ratio?: number; tallest?: number } = {},
    ) {
        this.root = document.createElement("figure");
        this.root.className = "plot";
        const caption = document.createElement("figcaption");
        caption.textContent = title;
        this.surface = document.createElement("div");
        this.surface.className = "surface";
        this.surface.tabIndex = 0;
        this.note = document.createElement("div");
        this.note.className = "note";
        this.note.hidden = true;
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.classList.add("chart");
        svg.setAttribute("aria-hidden", "true"); // the surface speaks for it
        this.svg = select(svg);
        this.svg.selectAll("g.axis").data(["grid", "x", "y"]).join("g").attr("class", (name: string) => `axis ${name}`); // below the curves
        this.surface.append(svg, this.note);
        this.root.append(caption, this.surface);
        parent.append(this.root);
        new ResizeObserver(() => this.redraw()).observe(this.root);
        this.surface.addEventListener("pointermove", (event) => this.point(event));
        this.surface.addEventListener("pointerleave", () => this.leave());
        this.surface.addEventListener("keydown", (event) => this.press(event));
        this.surface.addEventListener("blur", () => this.leave());
    }

    protected abstract redraw(): void;
    protected abstract point(event: PointerEvent): void;
    protected abstract press(event: KeyboardEvent): void;
    protected abstract leave(): void;

    /** Sets the size of the picture, with room for the axes and so many lines above the plot. */
    protected place(linesAbove: number): Place {
        const width = Math.max(this.surface.clientWidth, 240);
        const height = Math.round(Math.min(Math.max(width * (this.shape.ratio ?? 0.6), 250), this.shape.tallest ?? 440)) + 18 * linesAbove;
        this.svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height);
        return { width, height, left: 52, top: 26 + 18 * linesAbove, right: width - 14, bottom: height - 46 };
    }

    protected axes(place: Place, x: Scale, y: Scale, labels: { x: string; y: string }): void {
        const ticks = { x: Math.max(3, Math.round(place.width / 90)), y: 5 };
        const plain = (scale: Scale, count: number) => {
            const shown = scale.tickFormat(count, "~g");
            return (value: number) => (shown(value) === "" ? "" : short(value));
        };
        const group = (name: string, transform: string) => this.svg.select(`g.${name}`).attr("transform", transform);
        const labelled = y.ticks(ticks.y).filter((value) => plain(y, ticks.y)(value) !== "");
        group("grid", `translate(${place.left},0)`).call((g) =>
            axisLeft(y).tickValues(labelled).tickSize(place.left - place.right).tickFormat(() => "")(g),
        );
        group("x", `translate(0,${place.bottom})`).call((g) =>
            axisBottom(x).ticks(ticks.x).tickFormat(plain(x, ticks.x)).tickSizeOuter(0).tickPadding(7)(g),
        );
        group("y", `translate(${place.left},0)`).call((g) =>
            axisLeft(y).ticks(ticks.y).tickFormat(plain(y, ticks.y)).tickSizeOuter(0).tickPadding(7)(g),
        );
        this.svg
            .selectAll("text.axis-label")
            .data([
                { text: labels.x, x: place.right, y: place.height - 7, anchor: "end" },
                { text: labels.y, x: 4, y: 13, anchor: "start" },
            ])
            .join("text")
            .attr("class", "axis-label")
            .attr("x", (d: { x: number }) => d.x)
            .attr("y", (d: { y: number }) => d.y)
            .attr("text-anchor", (d: { anchor: string }) => d.anchor)
            .text((d: { text: string }) => d.text);
    }

    /** Shows lines of text beside a position of the picture. */
    protected tell(x: number, y: number, rows: [name: string, value: string][], place: Place): void {
        this.note.replaceChildren(
            ...rows.map(([name, value]) => {
                const row = document.createElement("div");
                const left = document.createElement("span");
                const right = document.createElement("b");
                left.textContent = name;
                right.textContent = value;
                row.append(left, right);
                return row;
            }),
        );
        this.note.hidden = false;
        const onRight = x < place.width / 2;
        this.note.style.left = onRight ? `${x + 14}px` : "auto";
        this.note.style.right = onRight ? "auto" : `${place.width - x + 14}px`;
        this.note.style.top = `${Math.max(4, Math.min(y - 20, place.height - 30 - 20 * rows.length))}px`;
    }
}

export class Chart extends Plot {
    private drawing?: Drawing;
    private scales?: { x: Scale; y: Scale; place: Place };
    private cursor = -1;

    constructor(parent: HTMLElement, title: string, shape: { ratio?: number; tallest?: number } = {}) {
        super(parent, title, shape);
        this.surface.setAttribute("role", "slider");
        this.surface.setAttribute("aria-label", title);
        this.svg.selectAll("g.layer").data(["areas", "lines", "marks", "cursor"]).join("g").attr("class", (name: string) => `layer ${name}`);
    }

    draw(drawing: Drawing): void {
        this.drawing = drawing;
        this.redraw();
    }

    protected redraw(): void {
        const drawing = this.drawing;
        if (!drawing || this.surface.clientWidth === 0) return;
        const { series, marks = [] } = drawing;
        const legend = this.legendOf(series, marks);
        const place = this.place(legend.rows);
        const scale = (axis: AxisOf, at: 0 | 1, range: [number, number]) => {
            const values = series.flatMap((one) => one.points.map((point) => point[at]));
            const made = (axis.logarithmic ? scaleLog() : scaleLinear()).domain(domain(axis, values)).range(range);
            return axis.domain ? made : at === 0 && !axis.logarithmic ? made : made.nice();
        };
        const x = scale(drawing.x, 0, [place.left, place.right]);
        const y = scale(drawing.y, 1, [place.bottom, place.top]);
        this.scales = { x, y, place };
        this.axes(place, x, y, { x: drawing.x.label, y: drawing.y.label });
        this.drawSeries(series);
        this.drawMarks(marks);
        this.drawLegend(legend.items);
        const readable = this.readable()[0]?.points.length ?? 0;
        this.surface.setAttribute("aria-valuemin", "0");
        this.surface.setAttribute("aria-valuemax", String(Math.max(readable - 1, 0)));
        if (this.cursor >= 0 && this.cursor < readable) this.show(this.cursor, !this.note.hidden);
        else this.surface.setAttribute("aria-valuetext", this.summary());
        if (this.cursor < 0) this.surface.setAttribute("aria-valuenow", "0");
    }

    private drawSeries(series: Series[]): void {
        const { x, y, place } = this.scales!;
        const { x: xAxis, y: yAxis } = this.drawing!;
        const defined = ([a, b]: [number, number]) => visible(a, xAxis) && visible(b, yAxis);
        const px = (point: [number, number]) => x(point[0]);
        const py = (point: [number, number]) => y(point[1]);
        const path = line<[number, number]>().defined(defined).x(px).y(py);
        const filled = area<[number, number]>().defined(defined).x(px).y0(() => place.bottom).y1(py);
        const clip = `M${place.left},${place.top - 6}H${place.right + 1}V${place.bottom + 1}H${place.left}Z`;
        this.svg.selectAll("clipPath").data([0]).join("clipPath").attr("id", `clip-${this.id}`).selectAll("path").data([0]).join("path").attr("d", clip);
        const shapes = (kind: string[]) => series.filter((one) => kind.includes(one.kind));
        const layer = (name: string) => this.svg.select(`g.${name}`).attr("clip-path", `url(#clip-${this.id})`);
        layer("areas").selectAll("path").data(shapes(["area", "steps"])).join("path")
            .attr("class", (one: Series) => `${one.kind} s${one.colour}`)
            .attr("d", (one: Series) => filled(one.points));
        layer("lines").selectAll("path").data(shapes(["line", "dashes", "area"])).join("path")
            .attr("class", (one: Series) => `${one.kind === "dashes" ? "line dashes" : "line"} s${one.colour}`)
            .attr("d", (one: Series) => path(one.points));
        const dots = shapes(["dots"]).flatMap((one) => one.points.filter(defined).map((point) => ({ point, colour: one.colour })));
        this.svg.select("g.lines").selectAll("circle").data(dots).join("circle")
            .attr("class", (d: { colour: number }) => `dot s${d.colour}`)
            .attr("r", 3.2)
            .attr("cx", (d: { point: [number, number] }) => px(d.point))
            .attr("cy", (d: { point: [number, number] }) => py(d.point));
    }

    private readonly id = String(Math.random()).slice(2);

    private drawMarks(marks: Mark[]): void {
        const { x, y, place } = this.scales!;
        const { x: xAxis, y: yAxis } = this.drawing!;
        const inside = (value: number, scale: Scale) => {
            const [a, b] = scale.domain();
            return value >= Math.min(a, b) && value <= Math.max(a, b);
        };
        const shown = marks.filter(
            (mark) =>
                (mark.x === undefined || (visible(mark.x, xAxis) && inside(mark.x, x))) &&
                (mark.y === undefined || (visible(mark.y, yAxis) && inside(mark.y, y))),
        );
        const layer = this.svg.select("g.marks");
        const lines = shown.filter((mark) => mark.x === undefined || mark.y === undefined);
        layer.selectAll("line").data(lines).join("line")
            .attr("class", (mark: Mark) => `mark s${mark.colour ?? "-mark"}`)
            .attr("x1", (mark: Mark) => (mark.x === undefined ? place.left : x(mark.x)))
            .attr("x2", (mark: Mark) => (mark.x === undefined ? place.right : x(mark.x)))
            .attr("y1", (mark: Mark) => (mark.y === undefined ? place.top : y(mark.y)))
            .attr("y2", (mark: Mark) => (mark.y === undefined ? place.bottom : y(mark.y)));
        // Of a vertical line the text stands beside its top, on the side that has room; of a horizontal one above its right end.
        const vertical = (mark: Mark) => mark.x !== undefined;
        const fits = (mark: Mark, text: string) => x(mark.x!) + 6.6 * text.length + 8 < place.right;
        const textOf = (mark: Mark) => (vertical(mark) && mark.brief && !fits(mark, mark.label) && fits(mark, mark.brief) ? mark.brief : mark.label);
        const roomy = (mark: Mark) => fits(mark, textOf(mark));
        layer.selectAll("text").data(lines.filter((mark) => mark.label)).join("text")
            .attr("class", "mark-label")
            .attr("x", (mark: Mark) => (vertical(mark) ? x(mark.x!) + (roomy(mark) ? 6 : -6) : place.right - 2))
            .attr("y", (mark: Mark, i: number) => (vertical(mark) ? place.top + 14 + 16 * i : y(mark.y!) + (mark.below ? 16 : -5)))
            .attr("text-anchor", (mark: Mark) => (vertical(mark) && roomy(mark) ? "start" : "end"))
            .text(textOf);
        layer.selectAll("circle").data(shown.filter((mark) => mark.x !== undefined && mark.y !== undefined)).join("circle")
            .attr("class", (mark: Mark) => `target s${mark.colour ?? 0}`)
            .attr("r", 6)
            .attr("cx", (mark: Mark) => x(mark.x!))
            .attr("cy", (mark: Mark) => y(mark.y!));
    }

    /** Where the names of the series stand, in rows above the plot. */
    private legendOf(series: Series[], marks: Mark[]): { items: { series: Series; x: number; row: number }[]; rows: number } {
        const named = series.filter((one) => !one.unnamed && one.label);
        for (const mark of marks)
            if (mark.x !== undefined && mark.y !== undefined && mark.label)
                named.push({ label: mark.label, colour: mark.colour ?? 0, kind: "dots", points: [] });
        const width = Math.max(this.surface.clientWidth, 240);
        let x = 4;
        let row = 1;
        const items = named.map((one) => {
            if (x > 4 && x + textWidth(one.label) > width) {
                x = 4;
                ++row;
            }
            const item = { series: one, x, row };
            x += textWidth(one.label);
            return item;
        });
        return { items, rows: items.length ? row : 0 };
    }

    private drawLegend(items: { series: Series; x: number; row: number }[]): void {
        type Item = { series: Series; x: number; row: number };
        const groups = this.svg.selectAll("g.legend").data(items).join("g").attr("class", "legend")
            .attr("transform", (item: Item) => `translate(${item.x},${8 + 18 * item.row})`);
        groups.each(function (item: Item) {
            const group = select(this);
            const dots = item.series.kind === "dots";
            group.selectAll("path").data([0]).join("path")
                .attr("class", `${dots ? "dot" : item.series.kind === "steps" ? "steps" : "line"} ${item.series.kind} s${item.series.colour}`)
                .attr("d", dots ? "M5,4a4,4 0 1,0 8,0a4,4 0 1,0 -8,0" : item.series.kind === "steps" ? "M0,-1H18V9H0Z" : "M0,4H18");
            group.selectAll("text").data([0]).join("text").attr("x", 24).attr("y", 8).text(item.series.label);
        });
    }

    private readable(): Series[] {
        return (this.drawing?.series ?? []).filter((one) => !one.silent && one.points.length > 0);
    }

    private summary(): string {
        const marks = (this.drawing?.marks ?? []).map((mark) => mark.label).filter(Boolean);
        const names = this.readable().map((one) => `${one.label}, ${one.points.length} points`);
        return [...names, ...marks].join("; ") || "nothing drawn yet";
    }

    /** Shows the numbers of all curves beside a point of the first. */
    private show(index: number, visibly = true): void {
        const series = this.readable();
        const { x, y, place } = this.scales!;
        const main = series[0];
        if (!main) return;
        this.cursor = Math.max(0, Math.min(index, main.points.length - 1));
        const at = main.points[this.cursor][0];
        const rows: [string, string][] = [[this.drawing!.x.label, short(at)]];
        const dots: { point: [number, number]; colour: number }[] = [];
        for (const one of series) {
            const near = one === main ? this.cursor : bisectCenter(one.points.map((point) => point[0]), at);
            const point = one.points[near];
            const step = Math.abs(x(point[0]) - x(at));
            if (one !== main && step > 24) continue;
            // A curve of other points says where its number stands.
            const value = point[0] === at ? short(point[1]) : `${short(point[1])} at ${short(point[0])}`;
            rows.push([series.length > 1 ? one.label : this.drawing!.y.label, value]);
            if (visible(point[0], this.drawing!.x) && visible(point[1], this.drawing!.y)) dots.push({ point, colour: one.colour });
        }
        this.surface.setAttribute("aria-valuenow", String(this.cursor));
        this.surface.setAttribute("aria-valuetext", rows.map((row) => row.join(" ")).join(", "));
        if (!visibly) return;
        const layer = this.svg.select("g.cursor");
        layer.selectAll("line").data(visible(at, this.drawing!.x) ? [at] : []).join("line").attr("x1", x).attr("x2", x).attr("y1", place.top).attr("y2", place.bottom);
        layer.selectAll("circle").data(dots).join("circle")
            .attr("class", (d: { colour: number }) => `dot s${d.colour}`).attr("r", 4.5)
            .attr("cx", (d: { point: [number, number] }) => x(d.point[0]))
            .attr("cy", (d: { point: [number, number] }) => y(d.point[1]));
        this.tell(x(at), dots.length ? y(dots[0].point[1]) : place.top, rows, place);
    }

    protected point(event: PointerEvent): void {
        const main = this.readable()[0];
        if (!main || !this.scales) return;
        const at = this.scales.x.invert(event.clientX - this.surface.getBoundingClientRect().left);
        this.show(bisectCenter(main.points.map((point) => point[0]), at));
    }

    protected press(event: KeyboardEvent): void {
        const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
        const step = steps[event.key];
        const main = this.readable()[0];
        if (step === undefined || !main) return;
        event.preventDefault();
        this.show(Math.max(0, Math.min(this.cursor + step, main.points.length - 1)));
    }

    protected leave(): void {
        this.note.hidden = true;
        this.svg.select("g.cursor").selectAll("*").remove();
    }
}
