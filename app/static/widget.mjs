// The widget as an ES module: `import { mount, open } from ".../static/widget.mjs"`
import "./widget.js";

const api = globalThis.DocsAssistant;
export const mount = (options = {}) => api.mount({ service: new URL("..", import.meta.url).href, ...options });
export const { open, close } = api;
