"""Dashboard in the browser: it reads a storage, writes annotations, and never delays a launch.

============  ==================================================================
``server``    binding of an address, and the HTTP server
``safety``    access control: host, origin, token; security headers
``app``       routes: pages, data, files
``pages``     one file per page: its title and the data that it requests
``cache``     records of the studies, read again only where they changed
``picture``   positions of a configuration's edits in a block
``folder``    export of a study as static files
============  ==================================================================
"""
