// SPDX-License-Identifier: MIT
// What the page asks the program for: its commands, by their options.

/** Options of a command by name; "" is the value of a flag. */
export type Options = Record<string, string>;

export type Value = number | string | null | Value[];
export type Point = Record<string, Value>;

/** What a command prints with --format json. */
export interface Report extends Record<string, any> {
    command: string;
    configuration: Record<string, Value>;
    points: Point[];
}

/** A message of the program about what it was asked. */
export class Failure extends Error {}

const token = new URLSearchParams(location.search).get("token") ?? "";
const gone = "The program does not answer any more. Start bayesaim explore again and open its new address.";

function address(kind: "run" | "stream", command: string, options: Options): string {
    return `/${kind}/${command}?${new URLSearchParams({ ...options, token })}`;
}

async function get(command: string, options: Options, signal?: AbortSignal): Promise<string> {
    try {
        const response = await fetch(address("run", command, options), { signal });
        return await response.text();
    } catch (error) {
        if (signal?.aborted) throw error;
        throw new Failure(gone);
    }
}

export async function run(command: string, options: Options, signal?: AbortSignal): Promise<Report> {
    const answer = JSON.parse(await get(command, options, signal));
    if (answer.error) throw new Failure(answer.error);
    return answer;
}

/** The table that the command prints with --format csv. */
export async function csv(command: string, options: Options): Promise<string> {
    const text = await get(command, { ...options, format: "csv" });
    if (text.startsWith("{")) throw new Failure(JSON.parse(text).error);
    return text;
}

/** Runs a command that tells news; returns what stops it. */
export function stream(
    command: string,
    options: Options,
    told: { news(row: Point): void; result(report: Report): void; failure(message: string): void },
): () => void {
    const source = new EventSource(address("stream", command, options));
    const last = (name: string, use: (data: any) => void) =>
        source.addEventListener(name, (event) => {
            source.close();
            use(JSON.parse((event as MessageEvent).data));
        });
    source.addEventListener("news", (event) => told.news(JSON.parse((event as MessageEvent).data)));
    last("result", told.result);
    last("failure", (answer) => told.failure(answer.error));
    source.onerror = () => {
        source.close(); // otherwise the browser would start the command again
        told.failure(gone);
    };
    return () => source.close();
}

/** Runs one task at a time. A newer one takes the place of the one that waits, and ends one that takes long. */
export class Latest {
    private running?: AbortController;
    private next?: (signal: AbortSignal) => Promise<void>;
    private timer = 0;
    private since = 0;

    ask(task: (signal: AbortSignal) => Promise<void>): void {
        this.next = task;
        if (!this.running) {
            void this.start();
        } else if (!this.timer) {
            const long = 150; // ms
            this.timer = window.setTimeout(() => this.running?.abort(), Math.max(0, this.since + long - performance.now()));
        }
    }

    /** Ends what runs and forgets what waits. */
    cancel(): void {
        this.next = undefined;
        this.running?.abort();
    }

    private async start(): Promise<void> {
        while (this.next) {
            const task = this.next;
            this.next = undefined;
            this.running = new AbortController();
            this.since = performance.now();
            try {
                await task(this.running.signal);
            } catch (error) {
                if (!this.running.signal.aborted) console.error(error);
            }
            this.running = undefined;
            window.clearTimeout(this.timer);
            this.timer = 0;
        }
    }
}
