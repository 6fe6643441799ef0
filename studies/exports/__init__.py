"""Taking trials and studies away: exports, model cards, predictions."""
