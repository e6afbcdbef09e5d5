"""Sequential impulses: any topology, sweeps over joints and couplings."""
