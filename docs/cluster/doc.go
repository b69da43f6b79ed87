// Package cluster has no code: its tests try out the manifests and scripts beside it.
package cluster
