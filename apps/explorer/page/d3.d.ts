// SPDX-License-Identifier: MIT
// The functions of D3 5 that the page uses; Debian has no types of them.
type Accessor<T, R> = (datum: T, index: number) => R;

interface Scale {
    (value: number): number;
    invert(value: number): number;
    domain(): number[];
    domain(values: number[]): Scale;
    range(): number[];
    range(values: number[]): Scale;
    nice(count?: number): Scale;
    clamp(on: boolean): Scale;
    ticks(count?: number): number[];
    tickFormat(count?: number, format?: string): (value: number) => string;
}

interface Shape<T> {
    (data: T[]): string | null;
    x(value: Accessor<T, number>): Shape<T>;
    y(value: Accessor<T, number>): Shape<T>;
    y0(value: Accessor<T, number>): Shape<T>;
    y1(value: Accessor<T, number>): Shape<T>;
    defined(value: Accessor<T, boolean>): Shape<T>;
}

interface Axis {
    (selection: unknown): void;
    ticks(count: number, format?: string): Axis;
    tickValues(values: number[]): Axis;
    tickFormat(format: (value: number) => string): Axis;
    tickSizeOuter(size: number): Axis;
    tickSize(size: number): Axis;
    tickPadding(size: number): Axis;
}

interface Selection {
    select(selector: string): Selection;
    selectAll(selector: string): Selection;
    data<T>(values: T[]): Selection;
    join(tag: string): Selection;
    append(tag: string): Selection;
    attr(name: string, value: unknown): Selection;
    classed(names: string, on: boolean): Selection;
    style(name: string, value: unknown): Selection;
    text(value: unknown): Selection;
    call(action: (selection: Selection) => void): Selection;
    each(action: (this: SVGElement, datum: any, index: number) => void): Selection;
    remove(): Selection;
    node(): SVGElement;
}

declare module "d3-selection" {
    export function select(node: Element): Selection;
}
declare module "d3-scale" {
    export function scaleLinear(): Scale;
    export function scaleLog(): Scale;
    export function scaleSequential(interpolator: (t: number) => string): ((value: number) => string) & {
        domain(values: number[]): (value: number) => string;
    };
}
declare module "d3-axis" {
    export function axisBottom(scale: Scale): Axis;
    export function axisLeft(scale: Scale): Axis;
}
declare module "d3-shape" {
    export function line<T>(): Shape<T>;
    export function area<T>(): Shape<T>;
}
declare module "d3-array" {
    export function bisectCenter(values: number[], value: number): number;
    export function range(start: number, stop: number, step?: number): number[];
    export function bin(): {
        (values: number[]): (number[] & { x0: number; x1: number })[];
        domain(values: [number, number]): any;
        thresholds(values: number[]): any;
    };
}
declare module "d3-contour" {
    export function contours(): {
        (values: number[]): { value: number; coordinates: number[][][][] }[];
        size(values: [number, number]): any;
        thresholds(values: number[]): any;
        smooth(on: boolean): any;
    };
}
declare module "d3-geo" {
    export function geoPath(projection?: unknown): (object: unknown) => string;
    export function geoTransform(methods: { point(this: { stream: any }, x: number, y: number): void }): unknown;
}
declare module "d3-scale-chromatic" {
    export function interpolateViridis(t: number): string;
}
declare module "d3-format" {
    export function format(specifier: string): (value: number) => string;
}
declare module "d3-dsv" {
    export function csvFormat(rows: object[], columns?: string[]): string;
}
