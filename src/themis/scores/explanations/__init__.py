"""What explains a score and changes no number of it: pairs, where they are, who loses."""
