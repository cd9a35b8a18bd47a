"""What the driver knows about the objects of a cluster: the classes of their kinds, and their health."""
