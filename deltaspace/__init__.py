"""Design-space search for parameter-efficient fine-tuning: what a user imports and types."""
