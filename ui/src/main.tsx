import "@xterm/xterm/css/xterm.css";
import "./style/tokens.css";
import "./style/page.css";
import "./style/list.css";
import "./style/session.css";
import "./style/panels.css";
import "./style/help.css";
import { render } from "preact";
import { App } from "./components/App";
import { begin } from "./hub";
import { followHistory } from "./router";
import { listenForShortcuts } from "./shortcuts";
import { showHidden } from "./visible";

showHidden();
render(<App />, document.getElementById("app")!);
followHistory();
listenForShortcuts();
void begin();
