// SPDX-License-Identifier: MIT
// The spectrum of the weights under noise.
import { bin, range } from "d3-array";
import { Chart, type Series } from "./chart";
import { priorControls, priorOptions } from "./model";
import { Latest, csv, run, type Options, type Report } from "./server";
import type { Control } from "./settings";
import { commandLine, pythonPrior, short } from "./text";
import { Numbers, Readout, pairs, tellFailure, type Page, type View } from "./view";

/** The histogram of eigenvalues as the outline of its bars, with area 1. */
export function histogram(eigenvalues: number[], low: number, high: number): [number, number][] {
    const bars = Math.max(12, Math.min(48, Math.round(2 * Math.cbrt(eigenvalues.length) * 2)));
    const width = (high - low) / bars;
    const bins = bin().domain([low, high]).thresholds(range(low, high, width))(eigenvalues);
    const outline: [number, number][] = [];
    for (const bar of bins) {
        if (!(bar.x1 > bar.x0)) continue;
        const height = bar.length / (eigenvalues.length * (bar.x1 - bar.x0));
        outline.push([bar.x0, 0], [bar.x0, height], [bar.x1, height], [bar.x1, 0]);
    }
    return outline;
}

/** The law and the histogram of a sampled matrix. */
export function densitySeries(law: Report, eigenvalues: number[] | null, what: string): Series[] {
    const density = pairs(law, "x", "density");
    const [low, high] = [density[0][0], density[density.length - 1][0]];
    const bars: Series[] = eigenvalues?.length
        ? [{ label: what, colour: 1, kind: "steps", points: histogram(eigenvalues, low, high), silent: true }]
        : [];
    return [{ label: "law for large d", colour: 0, kind: "line", points: density }, ...bars];
}

/** A density may have a sharp peak, next to which nothing else would be seen. */
export function densityRange(series: Series[]): [number, number] {
    const line = series[0].points.map((point) => point[1]).filter(Number.isFinite).sort((a, b) => a - b);
    const bars = Math.max(0, ...(series[1]?.points ?? []).map((point) => point[1]));
    const most = line[line.length - 1];
    const typical = line[Math.floor(0.97 * line.length)];
    return [0, 1.08 * Math.max(most > 6 * typical ? 3 * typical : most, Math.min(bars, 3 * typical))];
}

export class SpectrumView implements View {
    readonly controls: Control[] = [
        ...priorControls.map((control) => ({ ...control, group: "Prior" })),
        {
            name: "noise-variance",
            label: "noise variance D",
            kind: "range",
            initial: "0.1",
            lowest: 0.001,
            highest: 10,
            logarithmic: true,
            group: "Noise",
        },
        { name: "dim", label: "sampled matrix, d", kind: "range", initial: "300", lowest: 20, highest: 1000, step: 10, group: "Noise" },
        { name: "seed", label: "seed", kind: "number", initial: "0", lowest: 0, highest: 1e9, step: 1, group: "Noise" },
    ];
    private page!: Page;
    private density!: Chart;
    private shrinkage!: Chart;
    private readonly readout = new Readout();
    private readonly numbers = new Numbers();
    private readonly latest = new Latest();

    mount(place: HTMLElement, page: Page): void {
        this.page = page;
        place.append(this.readout.root);
        this.density = new Chart(place, "Density of eigenvalues");
        this.shrinkage = new Chart(place, "Shrinkage of eigenvalues");
        place.append(this.numbers.root);
    }

    private options(): Options {
        const { settings } = this.page;
        const seed = settings.text("seed");
        return {
            ...priorOptions(settings),
            "noise-variance": settings.text("noise-variance"),
            eigenvalues: "",
            dim: settings.text("dim"),
            ...(seed === "0" ? {} : { seed }),
        };
    }

    private singular = (): boolean => ["bilinear", "ginibre"].includes(this.page.settings.text("prior"));

    update(): void {
        const { page } = this;
        const options = this.options();
        this.latest.ask((signal) =>
            tellFailure(page, signal, async () => {
                const start = performance.now();
                const law = await run("spectrum", options, signal);
                this.draw(law);
                page.say(`${law.points.length} points and ${law.eigenvalues.length} eigenvalues in ${Math.round(performance.now() - start)} ms`);
            }),
        );
    }

    private draw(law: Report): void {
        const values = this.singular() ? "± singular value" : "eigenvalue";
        const series = densitySeries(law, law.eigenvalues, `one matrix, d = ${law.configuration.dim}`);
        const x = pairs(law, "x", "x").map((point) => point[0]);
        const ends: [number, number] = [x[0], x[x.length - 1]];
        this.density.draw({ x: { label: `${values} λ`, domain: ends }, y: { label: "density", domain: densityRange(series) }, series });
        const inBulk = (at: number) => law.edges.some(([low, high]: [number, number]) => at >= low && at <= high);
        const denoised = pairs(law, "x", "denoised").map(([at, value]): [number, number] => [at, inBulk(at) ? value : NaN]);
        const seen = denoised.map((point) => point[1]).filter(Number.isFinite);
        this.shrinkage.draw({
            x: { label: `${values} λ of the noisy matrix`, domain: ends },
            y: { label: "denoised f(λ)", domain: [Math.min(0, ...seen, ends[0]), Math.max(...seen, ends[1])] },
            series: [
                { label: "Bayes-optimal", colour: 0, kind: "line", points: denoised },
                { label: "unchanged", colour: 5, kind: "dashes", points: [[ends[0], ends[0]], [ends[1], ends[1]]], silent: true },
            ],
        });
        const bulks = law.edges.map(([low, high]: [number, number]) => `[${short(low)}, ${short(high)}]`).join(" ∪ ");
        this.readout.show([
            ["mmse", short(law.mmse), law.mmse],
            ["noise variance D", short(law.configuration.noise_variance)],
            ["support", bulks],
        ]);
        this.numbers.show(law.points, ["x", "density", "hilbert", "denoised"]);
    }

    commands(): string[] {
        return [commandLine("spectrum", this.options())];
    }

    python(): string {
        const options = this.options();
        return (
            pythonPrior(options) +
            `law = bayesaim.Spectrum(prior, ${options["noise-variance"]})\n` +
            "print(law.mmse, law.edges)\n" +
            "bayesaim.plot.spectrum(law)\n"
        );
    }

    csv(): Promise<string> {
        return csv("spectrum", this.options());
    }

    leave(): void {
        this.latest.cancel();
    }
}
