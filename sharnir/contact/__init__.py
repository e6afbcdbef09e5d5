"""Laws of contact, and the problem in which points of contact, friction and limits of joints are solved together."""
