import "../shared/style.css";
import "../shared/answers.css";
import "./style.css";
import { render } from "preact";
import { Api } from "../shared/api";
import { highlighter } from "../shared/code";
import { History } from "../shared/history";
import { Storage } from "../shared/storage";
import { App } from "./app";

highlighter.load = () => import("../shared/highlight");
const prefix = `da:${new URL(document.baseURI).pathname}:`;
const storage = new Storage(prefix);
const session = new Storage(prefix, "sessionStorage");
const api = new Api(document.baseURI, session.get("key") || storage.get("key"));
render(<App api={api} storage={storage} session={session} history={new History(api, storage)} />, document.body);
