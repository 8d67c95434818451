/* Hands a trace to Perfetto: the short one that this page carries, or a file that the reader picks. Nothing is loaded before. */

const PERFETTO = "https://ui.perfetto.dev";
const PATIENCE = 30000;

class TraceOpener {
  constructor(place) {
    const { gzip, title } = JSON.parse(place.querySelector("script").textContent);
    this.title = title;
    this.status = make("p", { className: "readout" });
    this.status.setAttribute("role", "status");
    const short = make("button", { type: "button", hidden: !gzip }, "Open the short trace in Perfetto");
    short.addEventListener("click", () => this.open("short-trace.json.gz", () => Uint8Array.from(atob(gzip), (letter) => letter.charCodeAt(0)).buffer));
    const file = make("input", { type: "file", accept: ".gz,.json", id: "trace-file" });
    const whole = make("button", { type: "button", disabled: true }, "Open the chosen file in Perfetto");
    file.addEventListener("change", () => { whole.disabled = !file.files.length; });
    whole.addEventListener("click", () => this.open(file.files[0].name, () => file.files[0].arrayBuffer()));
    const label = make("label", { htmlFor: "trace-file" }, "The whole trace, trace.json.gz beside this page: ");
    place.append(make("p", { className: "tools" }, short), make("p", { className: "tools" }, label, file, whole), this.status);
  }

  say(text) {
    this.status.textContent = text;
  }

  async open(name, read) {
    if (!navigator.onLine) {
      this.say("This machine is offline, and Perfetto's page comes from the network. The rest of the report needs none.");
      return;
    }
    const page = window.open(PERFETTO);
    if (!page) {
      this.say("The browser blocked the new window: allow this page to open one, and try again.");
      return;
    }
    this.say("Waiting for Perfetto…");
    try {
      const [buffer] = await Promise.all([read(), this.answer(page)]);
      page.postMessage({ perfetto: { buffer, title: this.title, fileName: name } }, PERFETTO);
      this.say("Handed over. Perfetto asks there whether to trust this page: say yes.");
    } catch (error) {
      this.say(error.message);
    }
  }

  answer(page) {
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearInterval(asking);
        clearTimeout(late);
        window.removeEventListener("message", heard);
      };
      const heard = (event) => {
        if (event.source !== page || event.origin !== PERFETTO || event.data !== "PONG") return;
        stop();
        resolve();
      };
      const asking = setInterval(() => page.postMessage("PING", "*"), 100);
      const late = setTimeout(() => {
        stop();
        reject(new Error(`Perfetto did not answer: is the network off, or is ${PERFETTO} blocked? The trace file can be dropped on its page later.`));
      }, PATIENCE);
      window.addEventListener("message", heard);
    });
  }
}

all(".opener").forEach((place) => new TraceOpener(place));
