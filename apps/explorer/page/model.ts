// SPDX-License-Identifier: MIT
// The settings of a model, the options of the program that they stand for, and the same in Python.
import type { Options } from "./server";
import type { Control, Settings } from "./settings";
import { brief } from "./text";

const channelLabels: Record<string, string> = {
    softmax: "softmax",
    hardmax: "hardmax",
    linear: "linear",
    "hardmax-as-printed": "hardmax, as published",
    "deep-softmax": "several layers, softmax",
    "deep-seq2seq": "several layers, tokens",
    "multi-head": "several heads, softmax",
};
const attentionLabels: Record<string, string> = {
    tied: "tied (S symmetric)",
    cross: "cross",
    masked: "masked",
    self: "self",
    causal: "causal",
};

const channel = (of: Settings) => of.text("channel");
const isOneOf = (name: string, ...values: string[]) => (of: Settings) => values.includes(of.text(name));
const deep = isOneOf("channel", "deep-softmax", "deep-seq2seq");
const tied = (of: Settings) => !of.applies("attention") || of.text("attention") === "tied";
/** A row of masked attention has T - 1 entries; one alone tells nothing after a softmax or hardmax. */
const fewestTokens = (of: Settings) => (!tied(of) && of.text("attention") === "masked" && channel(of) !== "linear" ? 3 : 2);
const hasWidth = (of: Settings) => !of.applies("prior") || !["wigner", "ginibre"].includes(of.text("prior"));

function priors(of: Settings): [string, string][] {
    if (!tied(of))
        return [
            ["bilinear", "W_Q W_Kᵀ, width ρ"],
            ["ginibre", "independent entries"],
        ];
    return [
        ["wishart", "W Wᵀ, width ρ"],
        ["wigner", "Gaussian (wide limit)"],
        ["power-law", "power-law spectrum"],
    ];
}

const width: Control = {
    name: "width",
    label: "width ρ = r/d",
    kind: "range",
    initial: "0.5",
    lowest: 0.02,
    highest: 2,
    step: 0.01,
    applies: hasWidth,
};
const exponent: Control = {
    name: "exponent",
    label: "exponent γ",
    kind: "range",
    initial: "1",
    lowest: 0.2,
    highest: 3,
    step: 0.05,
    applies: isOneOf("prior", "power-law"),
};

/** The controls of a prior without a channel. */
export const priorControls: Control[] = [
    {
        name: "prior",
        label: "prior of S",
        kind: "choice",
        initial: "wishart",
        choices: () => [
            ["wishart", "W Wᵀ, width ρ"],
            ["wigner", "Gaussian (wide limit)"],
            ["power-law", "power-law spectrum"],
            ["multi-head", "mean of several heads"],
            ["bilinear", "W_Q W_Kᵀ, width ρ"],
            ["ginibre", "independent entries"],
        ],
    },
    width,
    exponent,
    {
        name: "heads",
        label: "heads M",
        kind: "range",
        initial: "2",
        lowest: 1,
        highest: 8,
        step: 1,
        applies: isOneOf("prior", "multi-head"),
    },
];

export function modelControls(channels: string[] = Object.keys(channelLabels)): Control[] {
    return [
        {
            name: "channel",
            label: "channel",
            kind: "choice",
            initial: "softmax",
            choices: () => channels.map((name) => [name, channelLabels[name]]),
        },
        {
            name: "attention",
            label: "attention",
            kind: "choice",
            initial: "tied",
            choices: () => Object.entries(attentionLabels),
            applies: isOneOf("channel", "linear", "softmax", "hardmax"),
        },
        {
            name: "prior",
            label: "prior of S",
            kind: "choice",
            initial: (of) => priors(of)[0][0],
            choices: priors,
            applies: (of) => channel(of) !== "multi-head",
        },
        width,
        exponent,
        {
            name: "tokens",
            label: "tokens T",
            kind: "range",
            initial: (of) => String(fewestTokens(of)),
            lowest: fewestTokens,
            highest: (of) => (channel(of) === "hardmax" && tied(of) ? 6 : 8),
            step: 1,
            applies: (of) => !isOneOf("channel", "hardmax-as-printed", "deep-seq2seq")(of),
        },
        {
            name: "beta",
            label: "inverse temperature β",
            kind: "range",
            initial: "1",
            lowest: 0.1,
            highest: 10,
            logarithmic: true,
            applies: isOneOf("channel", "softmax", "deep-softmax", "deep-seq2seq", "multi-head"),
        },
        {
            name: "label-noise",
            label: "label noise Δ (variance)",
            kind: "range",
            initial: "0",
            lowest: 0,
            highest: 2,
            step: 0.01,
            applies: isOneOf("channel", "linear"),
        },
        { name: "layers", label: "layers L", kind: "range", initial: "2", lowest: 2, highest: 3, step: 1, applies: deep },
        {
            name: "residual",
            label: "residual strength c",
            kind: "range",
            initial: "1",
            lowest: 0,
            highest: 2,
            step: 0.05,
            applies: deep,
        },
        {
            name: "heads",
            label: "heads M",
            kind: "range",
            initial: "2",
            lowest: 1,
            highest: 8,
            step: 1,
            applies: isOneOf("channel", "multi-head"),
        },
    ];
}

/** What the program takes if an option is not given. */
const defaults: Options = {
    channel: "softmax",
    attention: "tied",
    prior: "wishart",
    tokens: "2",
    beta: "1",
    "label-noise": "0",
    layers: "2",
    residual: "1",
    heads: "2",
    exponent: "1",
};

/** The settings that make a model. */
export const modelNames = ["channel", "attention", "prior", "width", "exponent", "tokens", "beta", "label-noise", "layers", "residual", "heads"];

/** The options of the model, without those that are the program's defaults. */
export function modelOptions(of: Settings, except: string[] = []): Options {
    const options: Options = {};
    for (const name of modelNames) {
        if (!of.applies(name) || except.includes(name)) continue;
        const value = of.text(name);
        if (value !== defaults[name] && !(name === "prior" && value === "bilinear" && of.applies("channel"))) options[name] = value;
    }
    return options;
}

/** The options of the prior alone, for commands without a channel. */
export function priorOptions(of: Settings): Options {
    const options: Options = {};
    const implied = channel(of) === "multi-head" ? "multi-head" : of.text("prior");
    if (implied !== defaults.prior) options.prior = implied;
    for (const name of ["width", "exponent", "heads"]) {
        if (of.applies(name) && of.text(name) !== defaults[name]) options[name] = of.text(name);
    }
    return options;
}

/** "softmax, T = 2, ρ = 0.5" */
export function modelLabel(options: Options): string {
    const name = options.channel ?? "softmax";
    const words = [(options.attention ? options.attention + " " : "") + (channelLabels[name] ?? name)];
    const add = (option: string, symbol: string, always = false) => {
        const value = options[option] ?? (always ? defaults[option] : undefined);
        if (value !== undefined) words.push(`${symbol} = ${value}`);
    };
    if (options.prior) words.push(options.prior);
    add("layers", "L", name.startsWith("deep"));
    add("tokens", "T", !["hardmax-as-printed", "deep-seq2seq"].includes(name));
    add("width", "ρ");
    add("exponent", "γ", options.prior === "power-law");
    add("beta", "β");
    add("label-noise", "Δ");
    add("residual", "c");
    add("heads", "M", name === "multi-head");
    return words.join(", ");
}

/** A model whose averages are sampled, or found slowly: a tenth of a second a point. */
export const isSlow = (of: Settings): boolean =>
    deep(of) || channel(of) === "hardmax-as-printed" || (of.applies("attention") && ["self", "causal"].includes(of.text("attention")));

/** The generalisation error of softmax with more than two tokens takes most of the time: curves without it leave it out. */
export function withoutGeneralization(of: Settings): Options {
    const quick = isOneOf("channel", "linear", "hardmax", "hardmax-as-printed")(of) || (!deep(of) && of.number("tokens") === 2);
    return quick ? {} : { "estimation-only": "" };
}

/** A range of alpha that shows the curve of any width. */
export function usualAlpha(of: Settings): number {
    const t = of.applies("tokens") ? of.number("tokens") : 2;
    const constraints = tied(of) ? (t * t + t - 2) / 2 : t * (t - 1);
    switch (channel(of)) {
        case "hardmax":
        case "hardmax-as-printed":
            return 10;
        case "linear":
            return brief(1.2 / (tied(of) ? (t * (t + 1)) / 2 : t * t));
        case "deep-softmax":
            return brief((0.6 * of.number("layers")) / constraints);
        case "deep-seq2seq":
            return 1;
        default:
            return brief(0.6 / constraints);
    }
}
