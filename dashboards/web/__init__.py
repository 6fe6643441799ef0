"""The dashboard in the browser: reads a storage, writes what people say, slows no launch.

============  ==================================================================
``server``    binds an address and serves until it is told to stop
``safety``    who may ask: host, origin, token; what the browser is told to refuse
``app``       the addresses: pages, answers, files
``pages``     one file per page: what it is called and what it asks
``cache``     what is known of the studies, read anew only where it changed
``picture``   where the edits of a configuration stand in a block
``folder``    a study as files for any web server
============  ==================================================================
"""
