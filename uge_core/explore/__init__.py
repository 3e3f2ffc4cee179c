"""Questions about stored runs: two compared in pairs, one drawn in a plane, a graph edited on trial."""
