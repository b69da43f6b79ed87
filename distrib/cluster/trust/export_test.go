package trust

// Secret is a token's secret as it is sent.
func Secret(t Token) []byte { return t.secret[:] }
