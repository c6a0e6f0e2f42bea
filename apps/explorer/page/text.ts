// SPDX-License-Identifier: MIT
// Numbers and commands as text.
import { format } from "d3-format";
import type { Options } from "./server";

/** Two significant digits. */
export const brief = (value: number): number => Number(value.toPrecision(2));

const four = format(".4~r");
/** Four significant digits; a dash for what is absent. */
export function short(value: unknown): string {
    if (typeof value !== "number" || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    return Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6 ? value.toExponential(2) : four(value).replace("-", "−");
}

const grouped = format(",d");
/** A whole number with commas. */
export const whole = (value: number): string => (value < 1e15 ? grouped(value) : value.toExponential(2));

export function bytes(value: number): string {
    const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    const power = value < 1 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), units.length - 1);
    return `${Number((value / 1000 ** power).toPrecision(2))} ${units[power]}`;
}

export function duration(seconds: number): string {
    const units: [number, string][] = [
        [31557600, "years"],
        [86400, "days"],
        [3600, "hours"],
        [60, "minutes"],
        [1, "seconds"],
    ];
    for (const [length, name] of units) {
        const count = Number((seconds / length).toPrecision(2));
        if (count >= 2 || length === 1) return seconds < 1 ? "less than a second" : `${count} ${name}`;
    }
    return "";
}

/** The command line. */
export function commandLine(command: string, options: Options): string {
    const words = Object.entries(options).map(([name, value]) => (value === "" ? `--${name}` : `--${name} ${value}`));
    return ["bayesaim", command, ...words].join(" ");
}

const quoted = (value: string): string => (/^-?[0-9.]+(e-?[0-9]+)?$/.test(value) ? value : JSON.stringify(value));
const named = (options: Options, names: string[]): string =>
    names
        .filter((name) => name in options)
        .map((name) => `, ${name.replace(/-/g, "_")}=${quoted(options[name])}`)
        .join("");

/** Lines of Python that make `prior` and `channel`. */
export function pythonModel(options: Options): string {
    const name = options.channel ?? "softmax";
    const untied = (options.attention ?? "tied") !== "tied";
    const prior = options.prior ?? (name === "multi-head" ? "multi-head" : untied ? "bilinear" : "wishart");
    const heads: Options = prior === "multi-head" ? { heads: "2" } : {};
    const channel = name === "multi-head" ? "softmax" : name;
    return (
        pythonPrior({ ...heads, ...options, prior }) +
        `channel = bayesaim.make_channel(${JSON.stringify(channel)}` +
        named({ ...(channel.startsWith("deep") ? { layers: "2" } : {}), ...options }, [
            "tokens",
            "beta",
            "label-noise",
            "layers",
            "residual",
            "attention",
        ]) +
        ")\n"
    );
}

export function pythonPrior(options: Options): string {
    const prior = options.prior ?? "wishart";
    const heads: Options = prior === "multi-head" ? { heads: "2" } : {};
    return (
        "import bayesaim\n\n" +
        `prior = bayesaim.make_prior(${JSON.stringify(prior)}${named({ ...heads, ...options }, ["width", "exponent", "heads"])})\n`
    );
}
