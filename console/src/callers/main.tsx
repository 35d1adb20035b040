import { render } from "preact";
import { applyTheme } from "../components/theme.tsx";
import { App } from "./app.tsx";

applyTheme();
const place = document.getElementById("app");
if (place !== null) render(<App />, place);
