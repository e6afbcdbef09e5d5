"""Trees of links in joint coordinates: the energy–momentum step (theory, section 4, "lean trees")."""
