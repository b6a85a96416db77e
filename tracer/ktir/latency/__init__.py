"""An analytic latency model, its report and its plot."""
