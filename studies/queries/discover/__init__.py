"""What a study has taught: views of the posterior of the model of the search."""
