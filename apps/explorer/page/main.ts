// SPDX-License-Identifier: MIT
// The page: navigation, the form of the view that is shown, its address, and what can be taken away.
import { AmpView } from "./amp";
import { Form, element } from "./controls";
import { CurveView } from "./curve";
import { copy, pictureOf, save, savePng } from "./export";
import { PhaseView } from "./phase";
import { PlanView } from "./plan";
import { Settings } from "./settings";
import { SpectrumView } from "./spectrum";
import type { Page, View } from "./view";

const views: { id: string; label: string; title: string; make: () => View }[] = [
    { id: "curve", label: "Learning curve", title: "Learning curve", make: () => new CurveView() },
    { id: "amp", label: "AMP live", title: "Approximate message passing, live", make: () => new AmpView() },
    { id: "spectrum", label: "Spectrum", title: "Spectrum of the weights under noise", make: () => new SpectrumView() },
    { id: "phase", label: "Phase diagram", title: "Phase diagram", make: () => new PhaseView() },
    { id: "plan", label: "Plan", title: "Plan my experiment", make: () => new PlanView() },
];

const find = <Kind extends HTMLElement = HTMLElement>(id: string): Kind => document.getElementById(id) as Kind;

class Explorer implements Page {
    settings!: Settings;
    private id = "";
    private view!: View;
    private form!: Form;
    private timer = 0;

    constructor() {
        const nav = document.querySelector("nav")!;
        nav.append(...views.map(({ id, label }) => element("a", { href: `#${id}`, textContent: label })));
        window.addEventListener("hashchange", () => this.load());
        window.addEventListener("pagehide", () => this.view.leave());
        document.querySelector(".skip")!.addEventListener("click", (event) => {
            event.preventDefault(); // the address holds the view
            find("main").focus();
        });
        this.addExports();
        this.load();
    }

    /** Shows what the address says. */
    private load(): void {
        window.clearTimeout(this.timer);
        const [name, query = ""] = location.hash.slice(1).split("?");
        const found = views.find(({ id }) => id === name) ?? views[0];
        this.view?.leave();
        this.id = found.id;
        this.view = found.make();
        this.settings = new Settings(this.view.controls, Object.fromEntries(new URLSearchParams(query)));
        document.title = `${found.title} · bayesaim explorer`;
        document.querySelector("h1")!.textContent = found.title;
        for (const link of document.querySelectorAll("nav a")) {
            link.removeAttribute("aria-current");
            if (link.getAttribute("href") !== `#${found.id}`) continue;
            link.setAttribute("aria-current", "page");
            link.scrollIntoView({ block: "nearest", inline: "center" }); // on narrow screens the links scroll
        }
        find("intro").replaceChildren(find<HTMLTemplateElement>(`intro-${found.id}`).content.cloneNode(true));
        this.say("");
        find("taken").textContent = "";
        find("charts").replaceChildren();
        find("charts").className = found.id;
        this.view.mount(find("charts"), this);
        this.form = new Form(this.settings, (changed, when) => {
            this.settled();
            this.view.update(changed, when);
        });
        find("form").replaceChildren(this.form.root);
        find("actions").replaceChildren(
            ...(this.view.actions ?? []).map(({ label, title = "", run }) => {
                const button = element("button", { type: "button", textContent: label, title });
                button.addEventListener("click", run);
                return button;
            }),
        );
        find("actions").hidden = !this.view.actions;
        this.refresh();
        this.view.update("", performance.now());
    }

    say(text: string, kind?: "busy" | "error"): void {
        const status = find("status");
        if (status.textContent !== text) status.textContent = text;
        status.className = kind ?? "";
    }

    settled(): void {
        this.form.refresh(document.activeElement as HTMLElement);
        this.refresh();
        // Browsers take long for it, and refuse it if it comes too often.
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(() => this.setAddress(), 200);
    }

    private setAddress(): void {
        window.clearTimeout(this.timer);
        const query = this.settings.query();
        history.replaceState(null, "", `#${this.id}${query ? `?${query}` : ""}`);
    }

    refresh(): void {
        find("command").textContent = this.view.commands().join("\n");
        find("python").textContent = this.view.python();
        (this.view.actions ?? []).forEach(({ possible }, index) => {
            const button = find("actions").children[index] as HTMLButtonElement | undefined;
            if (button) button.disabled = !(possible?.() ?? true);
        });
    }

    open(view: string, chosen: Record<string, string>): void {
        location.hash = `#${view}?${new URLSearchParams(chosen)}`;
    }

    private addExports(): void {
        const said = async (work: () => Promise<string> | string) => {
            let text: string;
            try {
                text = await work();
            } catch (error) {
                text = error instanceof Error ? error.message : String(error);
            }
            find("taken").textContent = text;
        };
        const on = (id: string, work: () => Promise<string> | string) => find(id).addEventListener("click", () => said(work));
        on("copy-command", () => copy(find("command")));
        on("copy-python", () => copy(find("python")));
        on("copy-link", () => {
            this.setAddress();
            return copy(element("span", { textContent: location.href }));
        });
        const file = (ending: string) => `bayesaim-${this.id}.${ending}`;
        on("save-csv", async () => {
            save(file("csv"), await this.view.csv(), "text/csv");
            return `Saved ${file("csv")}`;
        });
        on("save-svg", () => {
            save(file("svg"), pictureOf(find("charts")).text, "image/svg+xml");
            return `Saved ${file("svg")}`;
        });
        on("save-png", async () => {
            await savePng(file("png"), find("charts"));
            return `Saved ${file("png")}`;
        });
    }
}

/** Light, dark, or what the system has. */
function addThemes(): void {
    const names = ["system", "light", "dark"];
    const labels: Record<string, string> = { system: "◐ System", light: "☀ Light", dark: "☾ Dark" };
    const button = find("theme");
    let theme = localStorage.getItem("theme") ?? "system";
    const show = () => {
        document.documentElement.dataset.theme = theme;
        button.textContent = labels[theme] ?? labels.system;
        button.setAttribute("aria-label", `Colours: ${theme}`);
    };
    button.addEventListener("click", () => {
        theme = names[(names.indexOf(theme) + 1) % names.length];
        localStorage.setItem("theme", theme);
        show();
    });
    show();
}

addThemes();
new Explorer();
