import "@xterm/xterm/css/xterm.css";
import "./style/tokens.css";
import "./style/page.css";
import "./style/list.css";
import "./style/session.css";
import "./style/panels.css";
import "./style/help.css";
import { render } from "preact";
import { installWorker } from "./app";
import { App } from "./components/App";
import { begin } from "./hub";
import { listenForShortcuts } from "./shortcuts";

render(<App />, document.getElementById("app")!);
listenForShortcuts();
installWorker();
void begin();
