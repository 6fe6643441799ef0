"""Exports of trials and studies, model cards, predictions."""
