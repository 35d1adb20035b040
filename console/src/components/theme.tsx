import { useEffect, useState } from "preact/hooks";

type Theme = "system" | "light" | "dark";

const stored = "tributary-theme";

/** Light, dark, or as the system has it. The choice is all that the console keeps in the browser. */
export function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(read);
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem(stored, theme);
    } catch {
      // A browser that stores nothing keeps the choice for this page.
    }
    dispatchEvent(new Event("theme"));
  }, [theme]);
  return (
    <label class="theme">
      <span class="unseen">Colours</span>
      <select
        value={theme}
        onChange={({ currentTarget: { value } }) =>
          setTheme(value === "light" || value === "dark" ? value : "system")
        }
      >
        <option value="system">Look: system</option>
        <option value="light">Look: light</option>
        <option value="dark">Look: dark</option>
      </select>
    </label>
  );
}

/** Takes up the choice of an earlier visit before anything is shown. */
export function applyTheme(): void {
  document.documentElement.dataset["theme"] = read();
}

function read(): Theme {
  try {
    const value = localStorage.getItem(stored);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}
