// SPDX-License-Identifier: MIT
// The theme searches in a Worker. Browsers start none for pages that are files: there it runs in a hidden frame instead.
window.Worker = class extends EventTarget {
    constructor(url) {
        super()
        this.waiting = []
        const frame = document.createElement("iframe")
        frame.hidden = true
        document.body.appendChild(frame)
        this.inside = frame.contentWindow
        this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
        const script = this.inside.document.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = () => {
            for (const message of this.waiting.splice(0)) this.deliver(message)
            this.waiting = null
        }
        this.inside.document.body.appendChild(script)
    }
    deliver(data) {
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data}))
    }
    postMessage(data) {
        if (this.waiting) this.waiting.push(data)
        else this.deliver(data)
    }
}
