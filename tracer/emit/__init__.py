"""SpyreKernel and Ktir -> folder: naming, templates, atomic writing, registry, drift."""
