//go:build !amd64 || portable

package vec

// available lists the implementations for this architecture: the portable one.
func available() []kernels {
	return []kernels{portable()}
}

// storeFence does nothing: no kernel here bypasses the caches.
func storeFence() {}
