// Package gbt learns gradient-boosted trees by histograms, on a schedule that Orion's analysis
// chooses (package [github.com/gomem/gomem/distrib/orion]; J. Wei's thesis, 2019, chapter 5, which
// names the application and leaves its algorithm open).
//
// # The algorithm
//
// A model is a number, the base, and trees, whose values are added to it (J. Friedman, 2001). Each
// tree follows the gradient of the loss at what those before it say: a leaf with sums G and H of
// first and second derivatives has the value -Rate*G/(H+L2). Features are quantised first, each
// into [MaxBins] bins at most: between the values that there are, or at quantiles of more.
// A tree grows level by level. In a pass over the data each leaf gets histograms: for each feature
// and bin, the sums of G, H and samples. A leaf is split where
//
//	G1^2/(H1+L2) + G2^2/(H2+L2) - G^2/(H+L2)
//
// is the most, if that is more than 0; of two equal ones by the feature of the lower number, and
// then by the lower limit. Of two leaves that were one, the smaller is counted, and the histograms
// of the other are the difference. Bins, gains and values are those of scikit-learn's
// HistGradientBoosting with max_depth and no max_leaf_nodes, but for rounding.
//
// # The loop
//
// A pass is the loop of [Worker] over samples and features: it reads a bin, the derivatives and the
// leaf of a sample, and adds to a histogram of the feature. These writes are buffered: nobody reads
// a histogram before the pass ends. So no iterations depend on each other, and both dimensions are
// sound. Orion takes the one that has fewer elements communicated, by the sizes that are
// declared, which are those of one leaf's histograms. So it depends on the data:
//
//   - By samples, each worker has histograms of all features, which are added up: as many elements
//     as there are in them. Each worker adds up some features and finds the best splits by them.
//     That is the choice where there are many samples.
//   - By features, nobody else has histograms of a worker's features, and there is nothing to add
//     up. But each worker needs the derivatives and the leaf of every sample: who has the feature
//     that splits a leaf tells all others which samples go left. That is the choice where features
//     are many.
//
// # The same trees
//
// Any number of workers, divided either way, make the same trees, bit for bit. Derivatives are made
// integers, in units of a power of two by which the largest has 30 bits; so sums are exact, in any
// order. All else is computed of these by one worker, or by all alike. The losses that are reported
// are sums of floating-point numbers, by workers in the order of their ranks: their last digits
// depend on the division.
package gbt
