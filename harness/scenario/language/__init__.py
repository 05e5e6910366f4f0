"""What a scenario file may say instead of repeating itself: bindings, templates, includes, repetition, outputs."""
