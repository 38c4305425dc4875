"""Clusterings, Voronoi cells and regions, and the slack that rounding errors require."""
