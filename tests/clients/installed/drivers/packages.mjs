import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

// Loaded before a driver: its packages are those of the folder that is its first argument, not those of this project.
const parentURL = pathToFileURL(`${process.argv[2]}/package.json`).href;
const drivers = new URL(".", import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const isOfDriver = context.parentURL?.startsWith(drivers) === true;
    const isPackage = !/^(?:\.|\/|node:|file:)/u.test(specifier);
    return next(specifier, isOfDriver && isPackage ? { ...context, parentURL } : context);
  },
});
