// Package nets has Gorgonia's own examples, in the sizes that a test or a benchmark asks for, with
// the same drawn values and data every time: linear regression in float64, MNIST's perceptron and
// convolutional network without their dropout, which draws, and an LSTM of characters.
package nets
