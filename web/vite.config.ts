import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Everything is served below /page/, from one flat folder, with the digest of each part in its name.
export default defineConfig({
  plugins: [svelte()],
  base: "/page/",
  build: {
    outDir: "../target/page",
    emptyOutDir: true,
    assetsDir: "",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
    target: "es2022",
  },
});
