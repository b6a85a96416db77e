"""KTIR: its dialect, text, verifier, simulator and coverage. Knows nothing of Triton or of models.

Public:

* `tracer.ktir.dialect` - op classes, types and attributes for whoever builds KTIR (`context()` knows them
  all);
* `tracer.ktir.text` - `parse(text, filename) -> ModuleOp` and `print_module(module) -> str`;
* `tracer.ktir.verifier` - `verify(module) -> list[Diagnostic]`, `public_parser_findings(module)`;
* `tracer.ktir.simulator` - `Module.parse(...).function(name).run(args) -> Result`;
* `tracer.ktir.coverage` - `coverage(function) -> Coverage`: what is read and written, without the arithmetic;
* `tracer.ktir.diagnostics` - `Diagnostic`, `KtirError`, the table `CODES`.
"""
