"""The factored sampler: a model of attention's edit, the FFN's edit and how they go together, and moves on both."""
