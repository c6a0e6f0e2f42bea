// SPDX-License-Identifier: MIT
// What a reader takes away: text in the clipboard, tables and pictures as files.
import { element } from "./controls";

export function save(name: string, content: BlobPart, type: string): void {
    const address = URL.createObjectURL(new Blob([content], { type }));
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const inherited = [
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linejoin", "opacity",
    "font-family", "font-size", "font-weight",
];

/** The pictures of a view side by side as on the page, in one file that needs no style sheet. */
export function pictureOf(view: HTMLElement): { text: string; width: number; height: number } {
    const charts = [...view.querySelectorAll<SVGSVGElement>("svg.chart")].filter((svg) => svg.getBoundingClientRect().width > 0);
    const places = charts.map((svg) => svg.getBoundingClientRect());
    const margin = 12;
    const left = Math.min(...places.map((place) => place.left)) - margin;
    const top = Math.min(...places.map((place) => place.top)) - margin;
    const width = Math.ceil(Math.max(...places.map((place) => place.right)) - left + margin);
    const height = Math.ceil(Math.max(...places.map((place) => place.bottom)) - top + margin);
    const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    whole.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    whole.setAttribute("viewBox", `0 0 ${width} ${height}`);
    whole.setAttribute("width", String(width));
    whole.setAttribute("height", String(height));
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    ground.setAttribute("width", "100%");
    ground.setAttribute("height", "100%");
    ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
    whole.append(ground);
    charts.forEach((svg, index) => {
        const copy = svg.cloneNode(true) as SVGSVGElement;
        copy.setAttribute("x", String(places[index].left - left));
        copy.setAttribute("y", String(places[index].top - top));
        copy.querySelector("g.cursor")?.remove();
        const from = [...svg.querySelectorAll("*")].filter((node) => !node.closest("g.cursor"));
        [...copy.querySelectorAll("*")].forEach((node, i) => {
            const style = getComputedStyle(from[i]);
            for (const name of inherited) node.setAttribute(name, style.getPropertyValue(name));
            node.removeAttribute("class");
        });
        copy.removeAttribute("class");
        copy.removeAttribute("aria-hidden");
        whole.append(copy);
    });
    return { text: new XMLSerializer().serializeToString(whole), width, height };
}

export async function savePng(name: string, view: HTMLElement): Promise<void> {
    const picture = pictureOf(view);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture.text)}`;
    await image.decode();
    const scale = 2;
    const canvas = element("canvas", { width: scale * picture.width, height: scale * picture.height });
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save(name, blob, "image/png");
}

/** Copies the text of an element; where the browser forbids it, selects the text. Returns what was done. */
export async function copy(from: HTMLElement): Promise<string> {
    try {
        await navigator.clipboard.writeText(from.textContent ?? "");
        return "Copied";
    } catch {
        getSelection()?.selectAllChildren(from);
        return "Selected: press Ctrl-C";
    }
}
