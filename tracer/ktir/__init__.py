"""KTIR: its dialect, text, rules, simulator, coverage and latency. Knows nothing of Triton or of models.

Public:

* `tracer.ktir.dialect.ktdp` - op classes, types and attributes for whoever builds KTIR (`context()` knows
  them all);
* `tracer.ktir.text.module` - `parse(text, filename) -> ModuleOp` and `print_module(module) -> str`;
* `tracer.ktir.rules.verifier` - `verify(module) -> list[Diagnostic]`, `public_parser_findings(module)`;
* `tracer.ktir.simulator` - `Module.parse(...).function(name).run(args) -> Result`;
* `tracer.ktir.coverage.accesses` - `coverage(function) -> Coverage`: what is read and written, without the
  arithmetic;
* `tracer.ktir.latency.model` - what a run costs, by the public simulator's constants;
* `tracer.ktir.diagnostics` - `Diagnostic`, `KtirError`, the table `CODES`.
"""
