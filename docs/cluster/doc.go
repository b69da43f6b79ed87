// Package cluster is what docs/cluster.md tells users to run; its tests try that out, as far as one
// machine allows.
package cluster
