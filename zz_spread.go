package main

import "drainit/config"

func spreadVerb(*config.Spread) int { return 1 }
