// Browsers refuse workers on file://. This one runs the worker's script in a hidden frame, so that search works there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      this.loaded = new Promise((resolve) => frame.addEventListener("load", () => {
        frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        resolve((data) => frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
      }));
      document.body.append(frame);
    }

    postMessage(data) {
      this.loaded.then((send) => send(data));
    }
  };
}
