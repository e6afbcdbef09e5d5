"""Pictures: the browser viewer (`sharnir.view.viewer`), films, and the demo's plots (`sharnir.view.plots`)."""
