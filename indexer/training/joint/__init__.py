"""Training of the joint reranker and reader: `app.engine.joint_network.JointModel`."""
