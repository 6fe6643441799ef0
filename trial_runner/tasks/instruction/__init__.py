"""Instruction tuning: dialogues as a chat template writes them, of which the answers are learned; plain texts, too."""
