// Package laws has only tests: what holds of every graph, plan and device together. Plans do not
// affect results, and peaks are exact (bitidentity, models, moe, fusion, precision); budgets are
// exact and monotone (budget, autobudget, auto, least); a disk, a mesh, a GPU and other workers
// change neither (disk, mesh, gpu, exchange, shared, counts). Run those of a topic by name, as by
// `go test ./internal/test/laws -run Disk`.
package laws
