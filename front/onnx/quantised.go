package onnx

// quantised are operators of quantised.
var quantised = each(map[string]func(n *node){})
